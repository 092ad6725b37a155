-- Steps that ran in the process: what they took for true, and what they put if all of that is so.
--
-- 1 if there are writes, else 0. n checks: 'g' (key, version or ''), 'r' (kind, index, '1' from the end, since or '', before or '', most, m members),
-- 'c' (index, count), 'n' (names, index, m names), 's' (series, since, m numbers). Then the lowest and the highest of
-- the numbers that the steps took (0: none), news or '', and the writes.
-- Gives {'ok', 'done'}, or {'ok', 'stale', the partition's last number, a list of (number of a check, what is so)…}.
--
-- A process has one commit at a time on its way to a partition. So it is enough to keep the number of its last one.
local commits = P .. 'commits:' .. OWNER
local stale = {}

local function is_same(found)
  local same, wanted, expected = true, take_number(), {}
  if wanted ~= #found then same = false end
  for i = 1, wanted do
    local one = take()
    expected[one] = true
    if one ~= found[i] then same = false end
  end
  return same, expected
end

local function range(key, from_end, since, before, most, ...)
  if since == '' and before == '' then
    return call(from_end and 'ZREVRANGE' or 'ZRANGE', key, 0, most - 1, ...)
  end
  local low, high = since == '' and '-inf' or since, before == '' and '+inf' or '(' .. before
  if from_end then return call('ZREVRANGEBYSCORE', key, high, low, 'LIMIT', 0, most, ...) end
  return call('ZRANGEBYSCORE', key, low, high, 'LIMIT', 0, most, ...)
end

local function differs(place, is)
  stale[#stale + 1] = place
  stale[#stale + 1] = is
end

local check = {}

function check.g(place)
  local key, version = P .. take(), take()
  local found = call('GETRANGE', key, 0, #version)
  if found ~= (version == '' and '' or version .. ' ') then differs(place, call('GET', key) or '') end
end

-- Also the documents that the process may not know.
function check.r(place)
  local kind, key, from_end, since, before, most = P .. take() .. ':', P .. take(), take() == '1', take(), take(), take_number()
  local same, expected = is_same(range(key, from_end, since, before, most))
  if same then return end
  local is = {}
  local found = range(key, from_end, since, before, most, 'WITHSCORES')
  for i = 1, #found, 2 do
    is[#is + 1] = found[i]
    is[#is + 1] = found[i + 1]
    is[#is + 1] = not expected[found[i]] and call('GET', kind .. found[i]) or ''
  end
  differs(place, is)
end

function check.c(place)
  local key, expected = P .. take(), take()
  local found = tostring(call('ZCARD', key))
  if found ~= expected then differs(place, found) end
end

function check.n(place)
  local key, index, is = P .. take(), P .. take(), {}
  for _, name in ipairs(call('SMEMBERS', key)) do
    if call('EXISTS', index .. name) == 1 then is[#is + 1] = name end
  end
  table.sort(is)
  if not is_same(is) then differs(place, is) end
end

function check.s(place)
  local key, since = P .. take(), take()
  local found = call('LRANGE', key, since, -1)
  if not is_same(found) then differs(place, found) end
end

local write = {}
function write.p() call('SET', P .. take(), take()) end
function write.d() call('DEL', P .. take()) end
function write.a() call('ZADD', P .. take(), take(), take()) end
function write.r() call('ZREM', P .. take(), take()) end
function write.n() call('SADD', P .. take(), take()) end
function write.u() call('SREM', P .. take(), take()) end
function write.e() push_all(P .. take(), take_many(take_number())) end
function write.t()
  local key, length = P .. take(), take_number()
  if length == 0 then call('DEL', key) else call('LTRIM', key, 0, length - 1) end
end

local writes = take() == '1'
if writes then
  local last = tonumber(call('GET', commits) or '0')
  if last == tonumber(CALL) then return { 'ok', 'done' } end
  if last > tonumber(CALL) then return { 'stale' } end
end
for place = 1, take_number() do check[take()](place) end
local lowest, highest, told = take_number(), take(), take()
local last = lowest > 0 and tonumber(call('GET', KEYS[1]) or '0') or 0
if #stale > 0 or (lowest > 0 and lowest <= last) then
  return { 'ok', 'stale', string.format('%.0f', last), stale }
end
if writes then
  call('SET', commits, CALL, 'EX', 86400)
  if lowest > 0 then call('SET', KEYS[1], highest) end
  while cursor < #ARGV do write[take()]() end
end
if told ~= '' then call('PUBLISH', CHANNEL, told) end
return { 'ok', 'done' }
