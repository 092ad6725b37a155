-- needs: lanes outbox sessions asking
-- lane, fence, item, outcome, now, 1 with a step and the absorbed items, or 0, rows.
-- Gives {'ok', {session, position, message ids} or {}, the lane's next item or {}, advances}.
return once(function()
  local lane, fence, item, outcome, now = take(), take(), take(), take(), take()
  check_lane(lane, fence, item)
  local step, known, absorbed = nil, nil, {}
  if take() == '1' then
    step = take_step()
    known = check_step(step, lane)
    absorbed = take_absorbed(lane, item)
  end
  local rows, given = take_rows(), {}
  for _, row in ipairs(rows) do given[row.id] = true end

  local appended = step and append(step, lane, known) or {}
  absorb(lane, item, absorbed)
  local reply = end_turn(item, lane, outcome, now)
  call('LREM', inbox_at(lane), 1, item)
  local freed = reply and not given[reply] and drop_streaming(reply)
  local advances = emit(rows, tonumber(now), freed and { freed } or {})

  local following = call('LINDEX', inbox_at(lane), 0)
  if following then
    call('HSET', lane_at(lane), 'head', following)
    following = begin_item(following)
  else
    let_go(lane)
  end
  return { 'ok', appended, following or {}, advances }
end)
