-- needs: sessions restoring terms
-- n, then of each message: id, what is stored, owner's digest, its terms with spaces between them.
-- Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do
    local id, text, owner, terms = take(), take(), take(), take()
    call('SET', P .. 'message:' .. id, text)
    local entry = packed(id)
    for term in string.gmatch(terms, '[^ ]+') do enter(owner, term, entry) end
    if terms ~= '' then call('SADD', P .. 'owners', owner) end
  end
  return restored()
end)
