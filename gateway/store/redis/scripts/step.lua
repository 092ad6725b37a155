-- needs: lanes sessions
-- lane, fence, item, steps ended, intents, the step, the absorbed items.
-- Gives {'ok', {session, position, message ids}}.
return once(function()
  local lane, fence, item, steps, intents = take(), take(), take(), take(), take()
  check_lane(lane, fence, item)
  local step = take_step()
  local known = check_step(step, lane)
  local absorbed = take_absorbed(lane, item)
  local appended = append(step, lane, known)
  absorb(lane, item, absorbed)
  local at = P .. 'turn:' .. item
  call('HSET', at, 'session', step.session, 'intents', intents)
  call('HINCRBY', at, 'steps', steps)
  return { 'ok', appended }
end)
