-- since, until, how many calls to pass over, how many to read. Gives {'ok', how many were read, {day, platform, purpose,
-- model, calls, the five counts of tokens, cost, calls without a price}…}: model calls by their day (UTC, from 1970 on).
return look(function()
  local found = call('ZRANGEBYSCORE', P .. 'ledger', take(), take(), 'WITHSCORES', 'LIMIT', take(), take())
  local sums, reply = {}, { 'ok', #found / 2 }
  for i = 1, #found, 2 do
    local made = cjson.decode(string.sub(found[i], string.find(found[i], '|', 1, true) + 1))
    local day = string.format('%d', math.floor(found[i + 1] / 86400))
    local who = table.concat({ day, made.platform or '', made.purpose, made.model }, '|')
    local sum = sums[who]
    if not sum then
      sum = { day, made.platform or '', made.purpose, made.model, 0, 0, 0, 0, 0, 0, 0, 0 }
      sums[who], reply[#reply + 1] = sum, sum
    end
    sum[5] = sum[5] + 1
    for place, tokens in ipairs(made.usage) do sum[5 + place] = sum[5 + place] + tokens end
    if type(made.cost) == 'number' then sum[11] = sum[11] + made.cost else sum[12] = sum[12] + 1 end
  end
  for i = 3, #reply do
    for place = 5, 12 do reply[i][place] = string.format('%.17g', reply[i][place]) end
  end
  return reply
end)
