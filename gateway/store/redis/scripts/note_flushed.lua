-- needs: sessions
-- session, messages. Gives {'ok'}.
return once(function()
  local at, messages = session_at(take()), take_number()
  if call('EXISTS', at) == 0 then return { 'ok' } end
  if tonumber(call('HGET', at, 'flushed_messages') or '0') < messages then
    call('HSET', at, 'flushed_messages', messages)
  end
  return { 'ok' }
end)
