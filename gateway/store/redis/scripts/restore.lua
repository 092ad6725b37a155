-- needs: lanes terms
-- n steps into a store that is being filled, each of m words: a plain command, whose second word is a key
-- without its prefix, or one of `steps` and what that takes. Gives {'ok'}.
local steps = {}

-- An unfinished item: they come in their order, so a lane waits from its first one on, under that one's number.
function steps.wait(lane, id)
  call('RPUSH', inbox_at(lane), id)
  if call('LLEN', inbox_at(lane)) == 1 then
    last_number = tonumber(id) - 1
    schedule(lane, id, true)
    last_number = nil -- the partition's counter stays as it is
  end
end

-- A message that a search finds, by its owner's digest, its id and its terms with spaces between them.
function steps.enter(owner, id, terms)
  local entry = packed(id)
  for term in string.gmatch(terms, '[^ ]+') do enter(owner, term, entry) end
  call('SADD', P .. 'searched', owner)
end

-- The partition gives only higher numbers from now on.
function steps.above(number)
  if tonumber(call('GET', KEYS[1]) or '0') < tonumber(number) then call('SET', KEYS[1], number) end
end

return once(function()
  for _ = 1, take_number() do
    local words = take_many(take_number())
    local step = steps[words[1]]
    if step then
      step(unpack(words, 2))
    else
      words[2] = P .. words[2]
      call(unpack(words))
    end
  end
  return { 'ok' }
end)
