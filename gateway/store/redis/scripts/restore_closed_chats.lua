-- needs: restoring
-- n, then of each closed chat: its name, and why nothing can be shown there. Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do call('HSET', P .. 'closed', take(), take()) end
  return restored()
end)
