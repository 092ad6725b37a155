-- needs: lanes outbox reminders
-- now, n; of each its id and its changing facts (set_reminder), with the version that must be one more than the present
-- one; all are changed or none; '0', or
-- '1' and an item's lane, platform, event id, document and when; rows.
-- Gives {'ok', whether the change was made, the item's id or '', advances}.
return once(function()
  local now, n = take_number(), take_number()
  local first = cursor
  for _ = 1, n do
    local version, next_version = call('HGET', reminder_at(take()), 'version'), take_many(4)[1]
    if not version or tonumber(next_version) ~= version + 1 then return { 'ok', 0, '', {} } end
  end
  cursor = first
  for _ = 1, n do
    local id = take()
    local facts = call('HMGET', reminder_at(id), 'chat', 'person')
    set_reminder(id, facts[1], facts[2])
  end
  local item = ''
  if take() == '1' then
    local lane = take()
    item = queue_item(lane, call('LLEN', inbox_at(lane)), take(), take(), take(), take())
  end
  return { 'ok', 1, item, emit(take_rows(), now, {}) }
end)
