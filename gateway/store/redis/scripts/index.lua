-- needs: terms
-- owner's digest, 'all' if these are all terms of the messages, 'last' if others were entered before them, else 'some',
-- '1': only those messages that are listed as unindexed, n messages, rising, m terms, each with the places of the
-- messages that hold it. A message that was forgotten meanwhile is not entered. Gives {'ok'}.
local owner, part, owed, ids = take(), take(), take() == '1', take_many(take_number())
local entries, last = {}, nil
local newer = part == 'all' and newest_of(owner) < packed(ids[1])
for place, id in ipairs(ids) do
  local exists
  if owed then exists = call('SISMEMBER', P .. 'unindexed', id) == 1
  else exists = call('EXISTS', P .. 'message:' .. id) == 1 end
  entries[tostring(place)] = exists and packed(id) or ''
  if exists then last = packed(id) end
end
if not last then return { 'ok' } end
for _ = 1, take_number() do
  local term, places = take(), take()
  enter(owner, term, (string.gsub(places, '(%d+) ?', entries)), newer)
end
call('SADD', P .. 'searched', owner)
-- The first step enters the list of all. Was it put off, the messages stay listed, and a search enters them anew.
if part ~= 'some' and newest_of(owner) >= last then call('SREM', P .. 'unindexed', unpack(ids)) end
return { 'ok' }
