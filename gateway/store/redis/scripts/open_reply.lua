-- needs: lanes outbox
-- lane, fence, item, session, row. Gives {'ok', the item's streaming row}.
return once(function()
  local lane, fence, item, session = take(), take(), take(), take()
  check_lane(lane, fence, item)
  local at = P .. 'turn:' .. item
  local reply = call('HGET', at, 'reply')
  if not reply then
    local row = take_row()
    reply = row.id
    insert_row(row.id, row.chat, row.address, row.fields, ROW_STREAMING)
    call('HSET', at, 'reply', reply)
    if session ~= '' then call('HSETNX', at, 'session', session) end
  end
  return { 'ok', call('HGETALL', row_at(reply)) }
end)
