-- needs: restoring
-- n, then of each: account, what is spent, until when it is kept (milliseconds since the epoch) or ''.
-- Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do
    local at, spent, till = P .. 'spent:' .. take(), take(), take()
    call('SET', at, spent)
    if till ~= '' then call('PEXPIREAT', at, till) end
  end
  return restored()
end)
