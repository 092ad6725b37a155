-- Members: `members` says until when each process counts as alive here. The claims of a dead process are
-- free again: its lanes wait for another worker under a higher fence, its chats are to be looked at, its
-- bypass items wait to be run.

local MOST = 200 -- lanes freed in one call, so that a call stays short

-- Free the lanes of one platform. Gives whether these were all.
local function free_lanes_of(owner, platform)
  local ready = ready_at(platform)
  local entries = redis.pcall('XPENDING', ready, GROUP, '-', '+', MOST, owner)
  if entries.err then return true end
  for _, pending in ipairs(entries) do
    local entry = call('XRANGE', ready, pending[1], pending[1])[1]
    local lane = entry and entry[2][2]
    if lane and call('HGET', lane_at(lane), 'entry') == pending[1] then
      let_go(lane, true)
    else
      call('XACK', ready, GROUP, pending[1])
    end
  end
  if #entries == MOST then return false end
  redis.pcall('XGROUP', 'DELCONSUMER', ready, GROUP, owner)
  return true
end

-- Free the lanes that have no entry, the one whose item came first before the others. Gives whether these were all.
local function free_others_of(owner)
  local held, heads = P .. 'suspect_of:' .. owner, {}
  local lanes = call('SRANDMEMBER', held, MOST)
  for _, lane in ipairs(lanes) do heads[lane] = tonumber(call('LINDEX', inbox_at(lane), 0) or 0) end
  table.sort(lanes, function(one, other) return heads[one] < heads[other] end)
  for _, lane in ipairs(lanes) do
    call('SREM', held, lane)
    let_go(lane, true)
  end
  return #lanes < MOST
end

-- Free all claims of a process. Gives whether these were all.
local function free_all_of(owner)
  for _, platform in ipairs(all_platforms()) do
    if not free_lanes_of(owner, platform) then return false end
  end
  if not free_others_of(owner) then return false end
  local left = call('ZCARD', P .. 'hooks') > 0
  for _, id in ipairs(call('SMEMBERS', P .. 'sending:' .. owner)) do
    left = true
    call('HSET', row_at(id), 'claim', '')
    look_at_chat(call('HGET', row_at(id), 'chat'), 0)
  end
  call('DEL', P .. 'sending:' .. owner)
  for _, id in ipairs(call('SMEMBERS', P .. 'bypass:' .. owner)) do
    left = true
    if call('HEXISTS', item_at(id), 'outcome') == 0 then
      local platform = platform_of(call('HGET', item_at(id), 'key'))
      call('SADD', P .. 'platforms', platform)
      call('ZADD', bypass_left_at(platform), id, id)
    end
  end
  call('DEL', P .. 'bypass:' .. owner)
  if left then tell('left ' .. string.match(P, '%d+') .. ' ' .. OWNER) end
  call('ZREM', P .. 'members', owner)
  return true
end
