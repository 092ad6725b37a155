-- needs: lanes
-- lane, platform, event id, document. Gives {'ok', whether an item that nobody began waits under this event}.
return once(function()
  local lane, platform, event, inbound = take(), take(), take(), take()
  local id = call('HGET', P .. 'events:' .. platform, event)
  if not id then return { 'ok', 0 } end
  local facts = call('HMGET', item_at(id), 'key', 'attempts', 'outcome', 'absorbed_by', 'bypass')
  local waits = facts[1] == lane and facts[2] == '0' and not (facts[3] or facts[4] or facts[5])
  if not waits or call('EXISTS', P .. 'turn:' .. id) == 1 then return { 'ok', 0 } end
  call('HSET', item_at(id), 'inbound', inbound)
  return { 'ok', 1 }
end)
