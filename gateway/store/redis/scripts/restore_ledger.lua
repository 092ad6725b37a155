-- needs: restoring
-- n, then of each model call: lane, when, document. Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do
    local lane, at, document = take(), take(), take()
    call('ZADD', P .. 'ledger', at, document)
    call('ZADD', P .. 'ledger:' .. lane, at, document)
  end
  return restored()
end)
