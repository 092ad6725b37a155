-- needs: sessions
-- n sessions. Gives {'ok', {fields and values, whether it is its key's present one, compactions}…}.
return look(function()
  local reply = { 'ok' }
  for i, id in ipairs(take_many(take_number())) do
    local key = call('HGET', session_at(id), 'key')
    local is_tip = key and call('GET', tip_at(key)) == id
    reply[i + 1] = { call('HGETALL', session_at(id)), is_tip and 1 or 0, call('LRANGE', P .. 'compactions:' .. id, 0, -1) }
  end
  return reply
end)
