-- needs: terms
-- owner's digest, 1 if these are the last terms of the messages, n messages, rising, m terms, each with the places of
-- the messages that hold it. A message that was forgotten meanwhile is not entered. Gives {'ok'}.
return once(function()
  local owner, last, ids = take(), take(), take_many(take_number())
  local entries, there = {}, false
  for place, id in ipairs(ids) do
    local exists = call('EXISTS', P .. 'message:' .. id) == 1
    entries[tostring(place)] = exists and packed(id) or ''
    there = there or exists
  end
  if not there then return { 'ok' } end
  for _ = 1, take_number() do
    local term, places = take(), take()
    enter(owner, term, (string.gsub(places, '(%d+) ?', entries)))
  end
  call('SADD', P .. 'searched', owner)
  if last == '1' then call('SREM', P .. 'unindexed', unpack(ids)) end
  return { 'ok' }
end)
