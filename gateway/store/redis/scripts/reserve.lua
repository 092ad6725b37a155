-- reservation, account, amount and limit in millionths of a US dollar, after how many seconds the
-- account may be forgotten ('0': never). Gives {'ok', whether there was room, the money spent}.
--
-- A reservation is counted at once; its note only lets `settle` correct the sum, once. A note that is
-- a day old belongs to a dead process.
local DAY = 86400
return once(function()
  local id, account, amount, limit, life = take(), take(), take_number(), take_number(), take()
  local at, note = P .. 'spent:' .. account, P .. 'reserved:' .. id .. ':' .. account
  local spent = tonumber(call('GET', at) or '0')
  if call('EXISTS', note) == 1 then return { 'ok', 1, spent } end
  if spent + amount > limit then return { 'ok', 0, spent } end
  call('SET', note, string.format('%.0f', amount), 'EX', DAY)
  call('INCRBY', at, string.format('%.0f', amount))
  if life ~= '0' then call('EXPIRE', at, life) end
  return { 'ok', 1, spent }
end)
