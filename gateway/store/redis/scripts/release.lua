-- needs: lanes
-- lane, fence, whether the attempt counts. Gives {'ok', the number under which the lane waits}.
return once(function()
  local lane, fence, counted = take(), take(), take()
  local head = check_lane(lane, fence, '')
  if counted == '0' then call('HINCRBY', item_at(head), 'attempts', -1) end
  let_go(lane)
  return { 'ok', string.format('%.0f', last_number) }
end)
