-- needs: outbox
-- n rows. Gives {'ok', {fields and values, the row whose place it has}…}.
return look(function()
  local reply = { 'ok' }
  for i, id in ipairs(take_many(take_number())) do
    local place = call('HGET', row_at(id), 'place')
    local first = place and call('ZRANGEBYSCORE', P .. 'rows', place, place, 'LIMIT', 0, 1)[1]
    reply[i + 1] = { call('HGETALL', row_at(id)), first or id }
  end
  return reply
end)
