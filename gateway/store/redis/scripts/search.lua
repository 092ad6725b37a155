-- owner's digest, below which number, how many candidates to look at, n terms. The rarest term's
-- messages are walked, newest first. Gives {'ok', number to go on below or '', message id…}.
return look(function()
  local owner, below, page, keys = take(), take(), take_number(), {}
  local rarest, fewest = nil, nil
  for i, term in ipairs(take_many(take_number())) do
    keys[i] = P .. 'term:' .. owner .. ':' .. term
    local size = call('ZCARD', keys[i])
    if size == 0 then return { 'ok', '' } end
    if not fewest or size < fewest then rarest, fewest = keys[i], size end
  end
  local entries = call('ZREVRANGEBYSCORE', rarest, below, '-inf', 'WITHSCORES', 'LIMIT', 0, page)
  local reply = { 'ok', #entries == 2 * page and '(' .. entries[#entries] or '' }
  for i = 1, #entries, 2 do
    local all = true
    for _, key in ipairs(keys) do
      all = all and (key == rarest or call('ZSCORE', key, entries[i]))
    end
    if all then reply[#reply + 1] = entries[i] end
  end
  return reply
end)
