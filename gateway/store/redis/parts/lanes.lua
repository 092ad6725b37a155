-- Lanes: `inbox:<key>` lists the ids of a key's unfinished items in their order, the running one
-- first. A lane with work is an entry of its platform's stream `ready:<platform>`; the process that
-- claims the lane has the entry in the consumer group under its own name until it lets the lane go. A lane that was idle
-- may be claimed with the acceptance of an item: then it has no entry, and is in `suspect_of:<process>` instead.
-- `lane:<key>` holds the entry and, while the lane runs, fence, owner and head. A fence is a number of
-- the partition, so fences only rise.

local GROUP = 'lanes'

local function ready_at(platform) return P .. 'ready:' .. platform end
local function item_at(id) return P .. 'item:' .. id end
local function inbox_at(lane) return P .. 'inbox:' .. lane end
local function lane_at(lane) return P .. 'lane:' .. lane end

-- Of the items that were running at several crashes only one may be the cause. Such suspects wait in
-- `suspects:<platform>`, and a process runs one suspect at a time (`suspect_of:<process>`), each when the
-- process has run for a while, so that only the cause uses up its attempts. A process says how many attempts
-- an item may have had that it would try now.

local function suspects_at(platform) return P .. 'suspects:' .. platform end
local function bypass_left_at(platform) return P .. 'bypass_left:' .. platform end

-- Make a lane wait whose first item is `head`. A suspect waits by its age (`aged`) or at the end.
local function schedule(lane, head, aged)
  local attempts = head and tonumber(call('HGET', item_at(head), 'attempts')) or 0
  local number, what, platform = next_number(), 'ready ', platform_of(lane)
  call('SADD', P .. 'platforms', platform)
  if attempts >= SUSPECT_ATTEMPTS then
    if aged then number = head end
    what = 'suspect '
    call('ZADD', suspects_at(platform), number, lane)
  else
    call('XADD', ready_at(platform), number .. '-0', 'lane', lane)
    call('HSET', lane_at(lane), 'entry', number .. '-0')
  end
  tell(what .. string.match(P, '%d+') .. ' ' .. number .. ' ' .. OWNER .. ' ' .. platform)
end

-- The number of the platform's lane that has waited longest for a worker, or ''.
local function waits_longest(platform)
  local groups = redis.pcall('XINFO', 'GROUPS', ready_at(platform))
  if groups.err then return '' end
  local after = '-'
  for _, group in ipairs(groups) do
    local facts = {}
    for i = 1, #group, 2 do facts[group[i]] = group[i + 1] end
    if facts.name == GROUP then after = '(' .. facts['last-delivered-id'] end
  end
  local entry = call('XRANGE', ready_at(platform), after, '+', 'COUNT', 1)[1]
  return entry and string.match(entry[1], '^%d+') or ''
end

local LOOKED_AT = 100 -- suspects: there are hardly ever more

-- The number of the platform's oldest suspect with so many attempts at most, or '', and its lane.
local function oldest_suspect_of(platform, allowed)
  local found = call('ZRANGE', suspects_at(platform), 0, LOOKED_AT - 1, 'WITHSCORES')
  for i = 1, #found, 2 do
    local head = call('LINDEX', inbox_at(found[i]), 0)
    local attempts = head and tonumber(call('HGET', item_at(head), 'attempts')) or 0
    if attempts <= allowed or attempts >= MOST_ATTEMPTS then return found[i + 1], found[i] end
  end
  return ''
end

local ours = nil

-- The lowest number that `of` gives for the platforms that this process runs, or '', and its platform.
local function first_of(of)
  local lowest, whose = '', nil
  ours = ours or known_among(RUNS)
  for _, platform in ipairs(ours) do
    local number = of(platform)
    if number ~= '' and (lowest == '' or tonumber(number) < tonumber(lowest)) then
      lowest, whose = number, platform
    end
  end
  return lowest, whose
end

local function longest_waiting() return first_of(waits_longest) end
local function oldest_suspect(allowed)
  return first_of(function(platform) return (oldest_suspect_of(platform, allowed)) end)
end

-- An item as a process reads it: id, key, document, when, attempts.
local function item_facts(id)
  return { id, unpack(call('HMGET', item_at(id), 'key', 'inbound', 'at', 'attempts')) }
end

-- Count an attempt at an item. Gives the item, put together by hand: every turn begins here.
local function begin_item(id)
  local facts = call('HMGET', item_at(id), 'key', 'inbound', 'at')
  return { id, facts[1], facts[2], facts[3], call('HINCRBY', item_at(id), 'attempts', 1) }
end

-- The lane's item that a process runs, or has begun and is about to resume, or nil.
local function running_item(lane)
  local head = call('HGET', lane_at(lane), 'head')
  if head then return head end
  local first = call('LINDEX', inbox_at(lane), 0)
  if first and call('HGET', item_at(first), 'attempts') ~= '0' then return first end
end

local function check_lane(lane, fence, item)
  local facts = call('HMGET', lane_at(lane), 'fence', 'head')
  if facts[1] ~= fence or not facts[2] then
    refuse('conflict', 'This worker does not run this lane any more.')
  end
  if item ~= '' and facts[2] ~= item then
    refuse('conflict', 'This item is not the one its lane runs.')
  end
  return facts[2]
end

-- Nobody runs the lane any more: a lane with items waits for a worker, an empty one is gone. A lane without an entry is
-- in `suspect_of:<process>`.
local function let_go(lane, aged)
  local facts = call('HMGET', lane_at(lane), 'entry', 'owner')
  if facts[1] then
    call('XACK', ready_at(platform_of(lane)), GROUP, facts[1])
    call('XDEL', ready_at(platform_of(lane)), facts[1])
  elseif facts[2] then
    call('SREM', P .. 'suspect_of:' .. facts[2], lane)
  end
  call('DEL', lane_at(lane))
  local head = call('LINDEX', inbox_at(lane), 0)
  if head then schedule(lane, head, aged) end
end

local function new_item(lane, platform, event, inbound, at, attempts)
  local id = next_number()
  call('HSET', P .. 'events:' .. platform, event, id)
  call('HSET', item_at(id), 'key', lane, 'inbound', inbound, 'at', at, 'attempts', attempts or 0)
  if call('RPUSH', P .. 'heard:' .. lane, id) > MOST_HEARD then call('LPOP', P .. 'heard:' .. lane) end
  return id
end

-- Run a lane from now on. Gives the fence.
local function hold(lane, head)
  local fence = next_number()
  call('HSET', lane_at(lane), 'fence', fence, 'owner', OWNER, 'head', head)
  joined()
  return fence
end

-- Put a new item at the end of its lane, behind `ahead` others. An idle lane is claimed at once if the caller `claims`.
-- Gives the item's id, and the fence if the lane was claimed.
local function queue_item(lane, ahead, platform, event, inbound, at, claims)
  claims = claims and ahead == 0
  local id = new_item(lane, platform, event, inbound, at, claims and 1 or 0)
  count('waiting:' .. platform_of(lane), 1)
  call('RPUSH', inbox_at(lane), id)
  if claims then
    call('SADD', P .. 'platforms', platform_of(lane))
    call('SADD', P .. 'suspect_of:' .. OWNER, lane)
    return id, hold(lane, id)
  end
  if ahead == 0 then schedule(lane) end
  return id
end

local function end_item(id, lane, outcome, at)
  call('HSET', item_at(id), 'outcome', outcome, 'ended_at', at)
  call('DEL', P .. 'signals:' .. id)
  count('waiting:' .. platform_of(lane), -1)
  if outcome == ITEM_DEAD then
    count('dead', 1)
    call('RPUSH', P .. 'dead', id)
  end
end

-- Take the ids of queued items that go into the turn of `head`. Refuses unless all of them wait.
local function take_absorbed(lane, head)
  local ids = take_many(take_number())
  for _, id in ipairs(ids) do
    local facts = call('HMGET', item_at(id), 'key', 'outcome', 'absorbed_by', 'bypass')
    if facts[1] ~= lane or facts[2] or facts[4] or id == head or (facts[3] and facts[3] ~= head) then
      refuse('conflict', 'Item ' .. id .. ' does not wait in this lane any more.')
    end
  end
  return ids
end

local function absorb(lane, head, ids)
  for _, id in ipairs(ids) do
    call('LREM', inbox_at(lane), 1, id)
    call('HSET', item_at(id), 'absorbed_by', head)
    call('SADD', P .. 'absorbed:' .. head, id)
  end
end
