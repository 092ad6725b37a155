-- needs: sessions restoring
-- n, then of each message: id, what is stored, owner's digest, its number in the index, n terms.
-- Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do
    local id, text, owner, number, terms = take(), take(), take(), take(), take_number()
    call('SET', P .. 'message:' .. id, text)
    for _ = 1, terms do call('ZADD', P .. 'term:' .. owner .. ':' .. take(), number, id) end
    if terms > 0 then call('SADD', P .. 'owners', owner) end
  end
  return restored()
end)
