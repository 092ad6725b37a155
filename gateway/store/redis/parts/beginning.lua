-- What a turn begins with: the item's journal, the row of its reply, the lane's present session (all as fields and
-- values), whether the lane has reminders. `begun`: an earlier attempt may have left a journal.
local function beginning(item, lane, begun)
  local journal, tip, reply = begun and call('HGETALL', P .. 'turn:' .. item) or {}, call('GET', P .. 'tip:' .. lane), nil
  for i = 1, #journal, 2 do
    if journal[i] == 'reply' then reply = journal[i + 1] end
  end
  return { journal, reply and call('HGETALL', P .. 'row:' .. reply) or {},
    tip and call('HGETALL', P .. 'session:' .. tip) or {}, call('EXISTS', P .. 'reminders:' .. lane) }
end
