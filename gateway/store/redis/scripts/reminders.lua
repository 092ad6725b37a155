-- needs: reminders
-- lane, chat, n. Gives {'ok', the facts of the key's open reminders and of n others…}.
return look(function()
  local lane, chat, left, reply = take(), take(), take_number(), { 'ok' }
  local others = {}
  for _, id in ipairs(call('ZREVRANGE', reminders_at(lane), 0, -1)) do
    if call('HEXISTS', reminders_in(chat), id) == 1 then
      table.insert(reply, 2, reminder_facts(id))
    elseif left > 0 then
      others[#others + 1] = reminder_facts(id)
      left = left - 1
    end
  end
  for _, each in ipairs(others) do reply[#reply + 1] = each end
  return reply
end)
