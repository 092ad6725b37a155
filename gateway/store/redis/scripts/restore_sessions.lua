-- needs: sessions restoring
-- n, then of each session: id, lane, when it is due or '', its number, 1 if it is the lane's present
-- one, n fields and values. Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do
    local id, lane, due, number, is_tip = take(), take(), take(), take(), take()
    set_fields(session_at(id), take_many(take_number()))
    call('HSET', session_at(id), 'f', 1)
    if due ~= '' then expires(id, due) end
    if is_tip == '1' then call('SET', tip_at(lane), id) end
    call('LPUSH', P .. 'sessions:' .. lane, id)
    call('ZADD', P .. 'sessions', number, id)
  end
  return restored()
end)
