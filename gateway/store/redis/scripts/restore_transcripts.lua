-- needs: sessions restoring
-- n, then: session, message, for each place in turn. Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do
    local session = take()
    call('RPUSH', transcript_at(session), take())
  end
  return restored()
end)
