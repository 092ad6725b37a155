-- needs: lanes reminders chats
-- cap, n, then of each arrival: lane, platform, event id, document, when, chat ('' for the gateway's
-- own arrivals), whether the arrival bypasses the lane.
-- Gives {'ok', {status, items ahead, id, 1 if its chat was closed}…}.
return once(function()
  local cap, reply = take_number(), { 'ok' }
  for i = 1, take_number() do
    local lane, platform, event, inbound, at, from, bypass = take(), take(), take(), take(), take(), take(), take()
    local ahead = bypass == '1' and 0 or call('LLEN', inbox_at(lane))
    if call('HEXISTS', P .. 'events:' .. platform, event) == 1 then
      reply[i + 1] = { 'duplicate', 0, '', 0 }
    elseif bypass == '0' and ahead >= cap then
      reply[i + 1] = { 'full', ahead, '', 0 }
    else
      local id
      local reopened = from ~= '' and reopen(from) or 0
      if bypass == '1' then
        id = new_item(lane, platform, event, inbound, at)
        count('waiting:' .. platform_of(lane), 1)
        call('HSET', item_at(id), 'bypass', 1, 'attempts', 1)
        call('SADD', P .. 'bypass:' .. OWNER, id)
        joined()
      else
        id = queue_item(lane, platform, event, inbound, at)
      end
      reply[i + 1] = { 'new', ahead, id, reopened }
    end
  end
  return reply
end)
