-- needs: outbox reminders
-- chat, why nothing can be shown there, now. Gives {'ok', advances}.
return once(function()
  local chat, why, now = take(), take(), take_number()
  call('HSET', P .. 'closed', chat, why)
  park(chat)
  for _, id in ipairs(call('ZRANGE', chat_at(chat), 0, -1)) do
    if is_among(ROW_WAITING, call('HGET', row_at(id), 'state') or '') then withhold(id, chat, why) end
  end
  return { 'ok', { advance(chat, now, false) } }
end)
