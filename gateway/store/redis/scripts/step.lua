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
  -- A step that has ended: the attempts are counted anew from this one.
  if tonumber(steps) > 0 and tonumber(call('HGET', item_at(item), 'attempts')) > 1 then
    call('HSET', item_at(item), 'attempts', 1)
  end
  return { 'ok', appended }
end)
