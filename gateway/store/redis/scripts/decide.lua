-- needs: outbox asking
-- lane, token, verdict, now, rows. Gives {'ok', 1 if nobody was first, {item, document, verdict} or {},
-- advances}.
return once(function()
  local lane, token, verdict, now = take(), take(), take(), take_number()
  local rows = take_rows()
  local item = call('HGET', asking_at(lane), token)
  if not item then return { 'ok', 0, {}, {} } end
  local turn = P .. 'turn:' .. item
  local first = call('HSETNX', turn, 'verdict:' .. token, verdict)
  local facts = call('HMGET', turn, 'asked:' .. token, 'verdict:' .. token)
  if first == 1 then tell('decided ' .. OWNER .. ' ' .. lane) end
  return { 'ok', first, { item, facts[1], facts[2] }, first == 1 and emit(rows, now, {}) or {} }
end)
