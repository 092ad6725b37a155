-- needs: lanes outbox reminders chats
-- lane, platform, event id, document, when, chat, now, rows. Gives {'ok', advances}.
return once(function()
  local lane, platform, event, inbound, at, from = take(), take(), take(), take(), take(), take()
  local now = take_number()
  if call('HEXISTS', P .. 'events:' .. platform, event) == 1 then return { 'ok', {} } end
  local id = new_item(lane, platform, event, inbound, at)
  if from ~= '' then reopen(from) end
  call('HSET', item_at(id), 'outcome', ITEM_REFUSED, 'ended_at', at)
  return { 'ok', emit(take_rows(), now, {}) }
end)
