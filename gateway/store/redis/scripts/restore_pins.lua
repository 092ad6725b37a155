-- needs: restoring
-- n, then of each key with pins: lane, document. Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do call('SET', P .. 'pins:' .. take(), take()) end
  return restored()
end)
