-- needs: terms
-- owner's digest, reach, n messages. The owner's messages before and after each, at most `reach` on a side.
-- Gives {'ok', ids with spaces between them…}, in the order of the messages.
return look(function()
  local owner, reach = take(), take_number()
  local all, reply = entries_of(term_at(owner, '*')), { 'ok' }
  for _, id in ipairs(take_many(take_number())) do
    local below, there = all.find(packed(id))
    local ids = {}
    for place = math.max(1, below - reach + 1), below do ids[#ids + 1] = message_of(all.at(place)) end
    ids[#ids + 1] = id
    local after = there and below + 2 or below + 1
    for place = after, math.min(all.size, after + reach - 1) do ids[#ids + 1] = message_of(all.at(place)) end
    reply[#reply + 1] = table.concat(ids, ' ')
  end
  return reply
end)
