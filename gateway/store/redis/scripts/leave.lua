-- needs: lanes outbox members
-- This process ends: its claims are free. Gives {'ok', whether these were all}.
return once(function()
  return { 'ok', free_all_of(OWNER) and 1 or 0 }
end)
