-- needs: lanes sessions
-- lane, fence, session, epoch, n, then of each change: field, 'set' or 'forget', value.
-- Another model or prompt raises the epoch; with another model the last report means nothing.
-- Gives {'ok', the session's fields}.
return once(function()
  local lane, fence, id, epoch = take(), take(), take(), take()
  check_lane(lane, fence, '')
  check_session(id, epoch, lane)
  local at, raised = session_at(id), false
  for _ = 1, take_number() do
    local name, what, value = take(), take(), take()
    local other = call('HGET', at, name) ~= value
    if name == 'expires_at' then
      expires(id, what == 'set' and value or '')
    elseif what == 'set' then
      call('HSET', at, name, value)
    else
      call('HDEL', at, name)
    end
    if other and name == 'model' then call('HSET', at, 'last_prompt_tokens', 0, 'reported_messages', 0) end
    raised = raised or (other and (name == 'model' or name == 'system_prompt'))
  end
  if raised then call('HINCRBY', at, 'epoch', 1) end
  return { 'ok', call('HGETALL', at) }
end)
