-- needs: lanes outbox reminders
-- id, now; its changing facts (set_reminder), with the version that must be one more than the present one; '0', or
-- '1' and an item's lane, platform, event id, document and when; rows.
-- Gives {'ok', whether the change was made, the item's id or '', advances}.
return once(function()
  local id, now = take(), take_number()
  local facts = call('HMGET', reminder_at(id), 'version', 'chat', 'person')
  if not facts[1] or tonumber(ARGV[cursor + 1]) ~= facts[1] + 1 then return { 'ok', 0, '', {} } end
  set_reminder(id, facts[2], facts[3])
  local item = ''
  if take() == '1' then item = queue_item(take(), take(), take(), take(), take()) end
  return { 'ok', 1, item, emit(take_rows(), now, {}) }
end)
