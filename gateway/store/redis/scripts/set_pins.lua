-- needs: lanes sessions
-- lane, fence, pins; then '0', or '1' and of the lane's session: id, epoch, its prompt with these pins,
-- its last report as it would have been with this prompt. Gives {'ok', the session's fields or none}.
return once(function()
  local lane, fence, pins, open = take(), take(), take(), take() == '1'
  check_lane(lane, fence, '')
  if not open and call('EXISTS', tip_at(lane)) == 1 then
    refuse('conflict', 'This key has a session, whose prompt must hold its pins.')
  end
  local id, epoch = open and take(), open and take()
  if open then check_session(id, epoch, lane) end
  call('SET', P .. 'pins:' .. lane, pins)
  if not open then return { 'ok', {} } end
  call('HSET', session_at(id), 'system_prompt', take(), 'last_prompt_tokens', take())
  call('HINCRBY', session_at(id), 'epoch', 1)
  return { 'ok', call('HGETALL', session_at(id)) }
end)
