-- A message from a chat was accepted: the chat is open from then on. A row that is being sent there was
-- handed out before (`heard`, until the row is handed out anew): if the platform refuses the row because
-- the chat is gone, the message is newer than the refusal. Gives 1 if the chat was closed, else 0.
local function reopen(chat)
  local reopened = call('HDEL', P .. 'closed', chat)
  if reopened == 1 then unpark(chat) end
  local head = call('ZRANGE', P .. 'out:' .. chat, 0, 0)[1]
  if head and call('HGET', P .. 'row:' .. head, 'state') == ROW_SENDING then
    call('HSET', P .. 'row:' .. head, 'heard', 1)
  end
  return reopened
end
