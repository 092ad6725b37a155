-- needs: lanes
-- Claims the lane that has waited longest. Gives {'ok', fence, item, the number of the next that waits or ''},
-- or {'ok'} if none waits.
local function take_entry()
  local function read()
    return redis.pcall('XREADGROUP', 'GROUP', GROUP, OWNER, 'COUNT', 1, 'STREAMS', READY, '>')
  end
  local found = read()
  if type(found) == 'table' and found.err then
    if not string.find(found.err, 'NOGROUP', 1, true) then error(found.err) end
    call('XGROUP', 'CREATE', READY, GROUP, '0', 'MKSTREAM')
    found = read()
  end
  if not found then return nil end
  local entry = found[1][2][1]
  return entry[1], entry[2][2]
end

return once(function()
  while true do
    local entry, lane = take_entry()
    if not entry then return { 'ok' } end
    if call('HGET', lane_at(lane), 'entry') == entry then
      local head, fence = call('LINDEX', inbox_at(lane), 0), next_number()
      call('HSET', lane_at(lane), 'fence', fence, 'owner', OWNER, 'head', head)
      joined()
      return { 'ok', fence, begin_item(head), longest_waiting() }
    end
    call('XACK', READY, GROUP, entry)
    call('XDEL', READY, entry)
  end
end)
