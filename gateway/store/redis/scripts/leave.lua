-- needs: lanes outbox members
-- This process ends: what it holds is free. Gives {'ok', whether that is all}.
return once(function()
  return { 'ok', free_all_of(OWNER) and 1 or 0 }
end)
