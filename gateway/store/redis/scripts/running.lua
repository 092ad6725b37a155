-- needs: lanes
-- lane. Gives {'ok', the item at its head if that was begun: id, key, document, when, attempts}.
return look(function()
  local lane = take()
  local id = call('HGET', lane_at(lane), 'head') or call('LINDEX', inbox_at(lane), 0)
  if not id then return { 'ok', {} } end
  local facts = call('HMGET', item_at(id), 'key', 'inbound', 'at', 'attempts')
  if facts[4] == '0' then return { 'ok', {} } end
  return { 'ok', { id, facts[1], facts[2], facts[3], facts[4] } }
end)
