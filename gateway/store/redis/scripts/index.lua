-- needs: terms
-- owner's digest, message, 1 if these are its last terms, n terms. Gives {'ok'}.
return once(function()
  local owner, id, last = take(), take(), take()
  local entry = packed(id)
  for _, term in ipairs(take_many(take_number())) do enter(owner, term, entry) end
  call('SADD', P .. 'searched', owner)
  if last == '1' then call('SREM', P .. 'unindexed', id) end
  return { 'ok' }
end)
