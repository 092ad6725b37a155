-- needs: reminders
-- now, limit. Gives {'ok', {when, facts…}…} of reminders whose time has come, of platforms that this process sends to.
return look(function()
  local now, limit, reply = take_number(), take_number(), { 'ok' }
  for _, platform in ipairs(known_among(SENDS)) do
    local found = call('ZRANGEBYSCORE', reminders_due_at(platform), '-inf', now, 'WITHSCORES', 'LIMIT', 0, limit)
    for i = 1, #found, 2 do
      reply[#reply + 1] = { found[i + 1], unpack(reminder_facts(found[i])) }
    end
  end
  return reply
end)
