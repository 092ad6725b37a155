-- needs: lanes
-- lane, the item that asks or "", n items, each with its document without words. Items that have ended, and the one
-- that asks, lose their words. Gives {"ok"}.
return once(function()
  local lane, asks = take(), take()
  for _ = 1, take_number() do
    local id, document = take(), take()
    local facts = call('HMGET', item_at(id), 'key', 'outcome')
    if facts[1] == lane and (facts[2] or id == asks) then call('HSET', item_at(id), 'inbound', document) end
  end
  return { 'ok' }
end)
