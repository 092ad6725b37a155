-- needs: sessions
-- lane, model calls. Gives {'ok'}.
return once(function()
  enter_calls(take(), take_ledger())
  return { 'ok' }
end)
