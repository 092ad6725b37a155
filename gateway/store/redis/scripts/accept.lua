-- needs: lanes chats
-- cap, n, then of each arrival: lane, platform, event id, document, when, chat ('' for the gateway's
-- own arrivals), whether the arrival bypasses the lane.
-- Gives {'ok', {status, items ahead, id}…}.
return once(function()
  local cap, reply = take_number(), { 'ok' }
  for i = 1, take_number() do
    local lane, platform, event, inbound, at, from, bypass = take(), take(), take(), take(), take(), take(), take()
    local ahead = bypass == '1' and 0 or call('LLEN', inbox_at(lane))
    if call('HEXISTS', P .. 'events:' .. platform, event) == 1 then
      reply[i + 1] = { 'duplicate', 0, '' }
    elseif bypass == '0' and ahead >= cap then
      reply[i + 1] = { 'full', ahead, '' }
    else
      local id = new_item(lane, platform, event, inbound, at)
      if from ~= '' then reopen(from) end
      count('waiting:' .. platform_of(lane), 1)
      if bypass == '1' then
        call('HSET', item_at(id), 'bypass', 1, 'attempts', 1)
        call('SADD', P .. 'bypass:' .. OWNER, id)
        joined()
      else
        call('RPUSH', inbox_at(lane), id)
        if ahead == 0 then schedule(lane) end
      end
      reply[i + 1] = { 'new', ahead, id }
    end
  end
  return reply
end)
