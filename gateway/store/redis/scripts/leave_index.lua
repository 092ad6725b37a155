-- needs: terms
-- owner's digest, message, n terms. Takes a message out of the index; what is out of it already stays out.
-- Gives {'ok'}.
local owner, id = take(), take()
local entry = packed(id)
for _, term in ipairs(take_many(take_number())) do leave(owner, term, entry) end
call('SREM', P .. 'unindexed', id)
call('HDEL', P .. 'signs:' .. owner, id)
call('HDEL', P .. 'vectors:' .. owner, id)
if call('EXISTS', term_at(owner, '*')) == 0 then
  call('SREM', P .. 'searched', owner)
  call('DEL', P .. 'signs:' .. owner, P .. 'vectors:' .. owner)
end
return { 'ok' }
