-- needs: reminders
-- id, lane, chat, person, how many of the person and how many in all may be open in the chat; then its changing facts (set_reminder).
-- Gives {'ok', document, number and whether it is parked, or {}}.
return once(function()
  local id, lane, chat, person, most, in_chat = take(), take(), take(), take(), take_number(), take_number()
  if call('EXISTS', reminder_at(id)) == 1 then return { 'ok', reminder_facts(id) } end
  if tonumber(call('HGET', reminders_by(chat), person) or '0') >= most then return { 'ok', {} } end
  if call('HLEN', reminders_in(chat)) >= in_chat then return { 'ok', {} } end
  local last = call('ZREVRANGE', reminders_at(lane), 0, 0, 'WITHSCORES')[2]
  local number = (tonumber(last) or 0) + 1
  local parked = call('HEXISTS', P .. 'closed', chat)
  call('HSET', reminder_at(id), 'id', id, 'key', lane, 'chat', chat, 'person', person, 'number', number)
  call('HSET', reminder_at(id), 'platform', platform_of(chat), 'parked', parked)
  call('ZADD', reminders_at(lane), number, id)
  set_reminder(id, chat, person)
  return { 'ok', reminder_facts(id) }
end)
