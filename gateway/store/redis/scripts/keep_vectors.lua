-- needs: terms
-- owner's digest, model, length of a vector ('0': there is none), n × (message, signs, numbers). Vectors of another model
-- or length go. A message that was forgotten meanwhile gets none: it left the list of all messages first. Gives {'ok'}.
local owner, model, size = take(), take(), take()
local of = call('HMGET', P .. 'embedded', 'model', 'size')
if of[1] ~= model or (size ~= '0' and of[2] and of[2] ~= size) then
  for _, each in ipairs(call('SMEMBERS', P .. 'searched')) do
    call('DEL', P .. 'signs:' .. each, P .. 'vectors:' .. each)
  end
  call('DEL', P .. 'embedded')
end
call('HSET', P .. 'embedded', 'model', model)
if size ~= '0' then call('HSET', P .. 'embedded', 'size', size) end
local all = entries_of(term_at(owner, '*'))
for _ = 1, take_number() do
  local id, signs, numbers = take(), take(), take()
  local _, there = all.find(packed(id))
  if there then
    call('HSET', P .. 'signs:' .. owner, id, signs)
    call('HSET', P .. 'vectors:' .. owner, id, numbers)
  end
end
return { 'ok' }
