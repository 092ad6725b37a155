-- needs: terms
-- owner's digest, the message to begin below ('': any), how many candidates to look at, n terms. The rarest
-- term's messages are walked, newest first. Gives {'ok', message to go on below or '', message id…}.
return look(function()
  local owner, below, page, lists = take(), take(), take_number(), {}
  local rarest = nil
  for i, term in ipairs(take_many(take_number())) do
    lists[i] = entries_of(term_at(owner, term))
    if lists[i].size == 0 then return { 'ok', '' } end
    if not rarest or lists[i].size < rarest.size then rarest = lists[i] end
  end
  local place = rarest.size
  if below ~= '' then place = (rarest.find(packed(below))) end
  local reply = { 'ok', '' }
  while place > 0 and page > 0 do
    local entry, all = rarest.at(place), true
    for _, list in ipairs(lists) do
      if all and list ~= rarest then
        local _, there = list.find(entry)
        all = there
      end
    end
    if all then reply[#reply + 1] = message_of(entry) end
    place, page = place - 1, page - 1
    if page == 0 and place > 0 then reply[2] = message_of(entry) end
  end
  return reply
end)
