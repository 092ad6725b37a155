-- needs: outbox reminders
-- lane, n reminders. Takes reminders of the lane away. Gives {'ok'}.
return once(function()
  local lane = take()
  for _, id in ipairs(take_many(take_number())) do
    local facts = call('HMGET', reminder_at(id), 'chat', 'person')
    local chat = facts[1]
    call('ZREM', reminders_at(lane), id)
    if chat then
      set_open(id, chat, facts[2], false)
      call('ZREM', reminders_due_at(platform_of(chat)), id)
    end
    call('DEL', reminder_at(id))
  end
  return { 'ok' }
end)
