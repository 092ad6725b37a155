-- needs: lanes outbox asking
-- lane, fence, item, token, document, now, rows. Gives {'ok', advances}.
return once(function()
  local lane, fence, item, token, asked, now = take(), take(), take(), take(), take(), take_number()
  check_lane(lane, fence, item)
  local rows = take_rows()
  if call('HSETNX', P .. 'turn:' .. item, 'asked:' .. token, asked) == 0 then return { 'ok', {} } end
  call('HSET', asking_at(lane), token, item)
  local reply = call('HGET', P .. 'turn:' .. item, 'reply')
  for _, row in ipairs(rows) do
    if row.id == reply then call('HDEL', P .. 'turn:' .. item, 'reply') end
  end
  return { 'ok', emit(rows, now, {}) }
end)
