-- needs: lanes reminders chats beginning
-- cap, how many idle lanes to claim, n, then of each arrival: lane, platform, event id, document, when, chat ('' for the
-- gateway's own arrivals), whether the arrival bypasses the lane.
-- Gives {'ok', {status, items ahead, id, 1 if its chat was closed, the fence if its lane was claimed (or ''), what its turn
-- begins with}…}.
return once(function()
  local cap, room, reply = take_number(), take_number(), { 'ok' }
  for i = 1, take_number() do
    local lane, platform, event, inbound, at, from, bypass = take(), take(), take(), take(), take(), take(), take()
    local ahead = bypass == '1' and 0 or call('LLEN', inbox_at(lane))
    if call('HEXISTS', P .. 'events:' .. platform, event) == 1 then
      reply[i + 1] = { 'duplicate', 0, '', 0, '' }
    elseif bypass == '0' and ahead >= cap then
      reply[i + 1] = { 'full', ahead, '', 0, '' }
    else
      local id, fence
      local reopened = from ~= '' and reopen(from) or 0
      if bypass == '1' then
        id = new_item(lane, platform, event, inbound, at, 1)
        count('waiting:' .. platform_of(lane), 1)
        call('HSET', item_at(id), 'bypass', 1)
        call('SADD', P .. 'bypass:' .. OWNER, id)
        joined()
      else
        local claims = room > 0 and is_among(RUNS, platform_of(lane))
        id, fence = queue_item(lane, ahead, platform, event, inbound, at, claims)
        if fence then room = room - 1 end
      end
      reply[i + 1] = { 'new', ahead, id, reopened, fence or '' }
    end
  end
  return reply
end, function(reply)
  for i = 2, #reply do
    local id, fence = reply[i][3], reply[i][5]
    if fence ~= '' then reply[i][6] = beginning(id, call('HGET', item_at(id), 'key') or '', false) end
  end
end)
