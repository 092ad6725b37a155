-- needs: asking
-- chat. Gives {'ok', {item, document, verdict or ''}…}.
return look(function()
  local reply = { 'ok' }
  local known = call('HGETALL', asking_at(take()))
  for i = 1, #known, 2 do
    local facts = call('HMGET', P .. 'turn:' .. known[i + 1], 'asked:' .. known[i], 'verdict:' .. known[i])
    if facts[1] then reply[#reply + 1] = { known[i + 1], facts[1], facts[2] or '' } end
  end
  return reply
end)
