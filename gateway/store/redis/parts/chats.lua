-- Somebody in a chat was heard: it is open from then on. What is being sent there was begun before, and a
-- refusal of it that says that the chat is gone says something old (`heard`, until the row is handed out anew).
local function reopen(chat)
  call('HDEL', P .. 'closed', chat)
  local head = call('ZRANGE', P .. 'out:' .. chat, 0, 0)[1]
  if head and call('HGET', P .. 'row:' .. head, 'state') == ROW_SENDING then
    call('HSET', P .. 'row:' .. head, 'heard', 1)
  end
end
