-- lane, n model calls: when, the entry, and the entry that tells nothing of whose it was. Gives {'ok'}.
return once(function()
  local lane = take()
  for _ = 1, take_number() do
    local at, entry, left = take(), take(), take()
    if call('ZREM', P .. 'ledger', entry) == 1 then call('ZADD', P .. 'ledger', at, left) end
    call('ZREM', P .. 'ledger:' .. lane, entry)
  end
  return { 'ok' }
end)
