-- needs: lanes
-- lane, limit. Gives {'ok', item…}.
return look(function()
  local lane, limit = take(), take_number()
  local first = call('HEXISTS', lane_at(lane), 'head')
  local reply = { 'ok' }
  for i, id in ipairs(call('LRANGE', inbox_at(lane), first, first + limit - 1)) do reply[i + 1] = item_facts(id) end
  return reply
end)
