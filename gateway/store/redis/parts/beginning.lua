-- What a turn begins with: the item's journal, the row of its reply, the lane's present session (all as fields and
-- values), whether the lane has reminders. `begun`: an earlier attempt may have left a journal.
local function beginning(item, lane, begun)
  local at = P .. 'turn:' .. item
  local reply, tip = begun and call('HGET', at, 'reply'), call('GET', P .. 'tip:' .. lane)
  return { begun and call('HGETALL', at) or {}, reply and call('HGETALL', P .. 'row:' .. reply) or {},
    tip and call('HGETALL', P .. 'session:' .. tip) or {}, call('EXISTS', P .. 'reminders:' .. lane) }
end
