-- needs: terms
-- owner's digest, message, 1 if these are its last terms, n terms. A message that was forgotten meanwhile is not
-- entered. Gives {'ok'}.
return once(function()
  local owner, id, last = take(), take(), take()
  if call('EXISTS', P .. 'message:' .. id) == 0 then return { 'ok' } end
  local entry = packed(id)
  for _, term in ipairs(take_many(take_number())) do enter(owner, term, entry) end
  call('SADD', P .. 'searched', owner)
  if last == '1' then call('SREM', P .. 'unindexed', id) end
  return { 'ok' }
end)
