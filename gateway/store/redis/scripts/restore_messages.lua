-- needs: sessions restoring
-- n, then of each message: id, what is stored, owner's digest, its number in the index, its terms
-- with spaces between them. Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do
    local id, text, owner, number, terms = take(), take(), take(), take(), take()
    call('SET', P .. 'message:' .. id, text)
    for term in string.gmatch(terms, '[^ ]+') do call('ZADD', P .. 'term:' .. owner .. ':' .. term, number, id) end
    if terms ~= '' then call('SADD', P .. 'owners', owner) end
  end
  return restored()
end)
