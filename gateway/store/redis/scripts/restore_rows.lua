-- needs: outbox restoring
-- n, then of each row: state, its number, the row whose place it has, the row. One that is being sent
-- has no sender, as after its process died. Gives {'ok'}.
return once(function()
  local chats = {}
  for _ = 1, take_number() do
    local state, number, first, row = take(), take(), take(), take_row()
    local open = state ~= 'sent' and state ~= 'refused'
    local place = first ~= row.id and call('ZSCORE', P .. 'rows', first) or nil
    number_is(number)
    insert_row(row.id, row.chat, row.address, row.fields, open and state or 'pending', place)
    if not open then settle(row.id, row.chat, state) end
    if state == 'sending' then call('HSET', row_at(row.id), 'claim', '') end
    chats[row.chat] = true
  end
  -- The caller sends to no platform: it claims nothing, but whoever does will look at these chats.
  for chat in pairs(chats) do advance(chat, 0, false) end
  return restored()
end)
