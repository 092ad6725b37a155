-- needs: lanes
-- lane, limit. Gives {'ok', {id, key, document, when, attempts}…}.
return look(function()
  local lane, limit = take(), take_number()
  local first = call('HEXISTS', lane_at(lane), 'head')
  local reply = { 'ok' }
  for i, id in ipairs(call('LRANGE', inbox_at(lane), first, first + limit - 1)) do
    local facts = call('HMGET', item_at(id), 'key', 'inbound', 'at', 'attempts')
    reply[i + 1] = { id, facts[1], facts[2], facts[3], facts[4] }
  end
  return reply
end)
