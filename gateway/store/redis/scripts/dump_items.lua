-- needs: lanes
-- n items. Gives {'ok', {fields and values, those of its turn, its signals, 1 unless it should wait in its
-- lane and does not}…}.
return look(function()
  local reply = { 'ok' }
  for i, id in ipairs(take_many(take_number())) do
    local facts = call('HMGET', item_at(id), 'key', 'outcome', 'bypass', 'absorbed_by')
    if facts[2] then
      reply[i + 1] = { call('HGETALL', item_at(id)), {}, {}, 1 }
    else
      local waits = facts[3] or facts[4] or call('LPOS', inbox_at(facts[1]), id)
      reply[i + 1] = { call('HGETALL', item_at(id)), call('HGETALL', P .. 'turn:' .. id), call('HGETALL', P .. 'signals:' .. id), waits and 1 or 0 }
    end
  end
  return reply
end)
