-- needs: sessions
-- lane, opening. The session is ended, and stands behind all others in the lists, which are in the order of their
-- beginnings. Gives {'ok', message ids}, or {'ok', {}, 1} if there is a session of this id.
return once(function()
  local lane, id = take(), take()
  if call('EXISTS', session_at(id)) == 1 then return { 'ok', {}, 1 } end
  local fields, messages = take_many(take_number()), take_messages()
  local ids = store_messages(messages)
  push_all(transcript_at(id), ids)
  set_fields(session_at(id), fields)
  call('RPUSH', P .. 'sessions:' .. lane, id)
  call('ZADD', P .. 'sessions', '-' .. next_number(), id)
  return { 'ok', ids }
end)
