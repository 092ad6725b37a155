-- needs: restoring
-- n, then of each: session, its number. Nobody owes them: whoever asks first will. Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do
    local id = take()
    call('ZADD', P .. 'hooks', take(), id)
  end
  return restored()
end)
