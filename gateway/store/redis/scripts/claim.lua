-- needs: lanes beginning
-- 1 if this process may run a suspect, else 0, and how many attempts the suspect may have had. Claims the lane that has
-- waited longest, of the platforms that this process runs. Gives {'ok', fence and id of the item (or '' and ''), the
-- number of the next lane that waits or '', the number of the oldest suspect or '', the item, what its turn begins with,
-- whether a signal was left for it}.
local function take_entry(stream)
  local function read()
    return redis.pcall('XREADGROUP', 'GROUP', GROUP, OWNER, 'COUNT', 1, 'STREAMS', stream, '>')
  end
  local found = read()
  if type(found) == 'table' and found.err then
    if not string.find(found.err, 'NOGROUP', 1, true) then error(found.err) end
    call('XGROUP', 'CREATE', stream, GROUP, '0', 'MKSTREAM')
    found = read()
  end
  if not found then return nil end
  local entry = found[1][2][1]
  return entry[1], entry[2][2]
end

-- Take the lane at the head of the stream; void entries before it are dropped.
local function take_ready(platform)
  local stream = ready_at(platform)
  while true do
    local entry, lane = take_entry(stream)
    if not entry or call('HGET', lane_at(lane), 'entry') == entry then return lane end
    call('XACK', stream, GROUP, entry)
    call('XDEL', stream, entry)
  end
end

local function take_suspect(platform, allowed)
  local _, lane = oldest_suspect_of(platform, allowed)
  call('ZREM', suspects_at(platform), lane)
  call('SADD', P .. 'suspect_of:' .. OWNER, lane)
  return lane
end

return once(function()
  local may_suspect, allowed = take() == '1', take_number()
  local suspect, suspects_platform = oldest_suspect(allowed)
  local ready, platform = '', ours[1]
  if suspect ~= '' or #ours > 1 then ready, platform = longest_waiting() end
  local lane = nil
  if may_suspect and suspect ~= '' and (ready == '' or tonumber(suspect) < tonumber(ready)) then
    lane = take_suspect(suspects_platform, allowed)
  elseif platform then
    lane = take_ready(platform)
  end
  local head, fence = '', ''
  if lane then
    head = call('LINDEX', inbox_at(lane), 0)
    fence = hold(lane, head)
    call('HINCRBY', item_at(head), 'attempts', 1)
  end
  return { 'ok', fence, head, (longest_waiting()), suspect ~= '' and (oldest_suspect(allowed)) or '' }
end, function(reply)
  local item = reply[3]
  if item == '' then return end
  reply[6] = item_facts(item)
  reply[7] = beginning(item, reply[6][2] or '', true)
  reply[8] = call('EXISTS', P .. 'signals:' .. item)
end)
