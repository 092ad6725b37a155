-- needs: outbox reminders
-- lane, n reminders. Takes reminders of the lane away. Gives {'ok'}.
return once(function()
  local lane = take()
  for _, id in ipairs(take_many(take_number())) do
    local chat = call('HGET', reminder_at(id), 'chat')
    call('ZREM', reminders_at(lane), id)
    if chat then
      call('HDEL', reminders_in(chat), id)
      call('ZREM', reminders_due_at(platform_of(chat)), id)
    end
    call('DEL', reminder_at(id))
  end
  return { 'ok' }
end)
