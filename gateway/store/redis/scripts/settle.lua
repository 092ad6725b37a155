-- reservation, account, cost in millionths of a US dollar. Gives {'ok'}.
return once(function()
  local id, account, cost = take(), take(), take_number()
  local note = P .. 'reserved:' .. id .. ':' .. account
  local amount = call('GET', note)
  if amount then
    call('DEL', note)
    call('INCRBY', P .. 'spent:' .. account, string.format('%.0f', cost - tonumber(amount)))
  end
  return { 'ok' }
end)
