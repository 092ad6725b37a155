-- needs: outbox
-- now, n chats. Gives {'ok', advances}.
return once(function()
  local now, advances = take_number(), {}
  for i, chat in ipairs(take_many(take_number())) do advances[i] = advance(chat, now, true) end
  return { 'ok', advances }
end)
