-- needs: reminders
-- lane, chat, n. Gives {'ok', the facts of the key's open reminders and of n others…}.
return look(function()
  local lane, chat, left, reply = take(), take(), take_number(), { 'ok' }
  local open = {}
  for _, id in ipairs(call('HKEYS', reminders_in(chat))) do
    local number = tonumber(call('ZSCORE', reminders_at(lane), id) or '0')
    if number > 0 then open[#open + 1] = { number, id } end
  end
  table.sort(open, function(one, other) return one[1] < other[1] end)
  for _, each in ipairs(open) do reply[#reply + 1] = reminder_facts(each[2]) end
  local first, some = 0, nil
  repeat
    some = call('ZREVRANGE', reminders_at(lane), first, first + 49)
    first = first + 50
    for _, id in ipairs(some) do
      if left > 0 and call('HEXISTS', reminders_in(chat), id) == 0 then
        reply[#reply + 1] = reminder_facts(id)
        left = left - 1
      end
    end
  until left < 1 or #some < 50
  return reply
end)
