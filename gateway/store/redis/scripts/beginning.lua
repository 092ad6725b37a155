-- needs: outbox sessions reminders
-- item, lane. Gives {'ok', journal, the row of its reply, the lane's present session (all as fields and values), whether
-- the lane has reminders}.
return look(function()
  local at, lane = P .. 'turn:' .. take(), take()
  local reply, tip = call('HGET', at, 'reply'), call('GET', tip_at(lane))
  return { 'ok', call('HGETALL', at), reply and call('HGETALL', row_at(reply)) or {},
    tip and call('HGETALL', session_at(tip)) or {}, call('EXISTS', reminders_at(lane)) }
end)
