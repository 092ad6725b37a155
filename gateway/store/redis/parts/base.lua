-- The beginning of every script. The first comment of a script names its arguments in their order, and its answer.
--
-- KEYS[1] is `{pNN}:seq`, the partition's counter; every other key of a script has the same prefix and
-- so lives in the same slot. ARGV: the calling process, the number of this call, the highest number
-- that was answered, the channel for news, how long the caller lives without a beat (milliseconds),
-- the platforms whose lanes the caller runs and the platforms that it sends to ('*', or names between
-- slashes); then the script's own arguments.
--
-- A script checks everything before its first write: `refuse` after a write would leave half of the step.

local P = string.sub(KEYS[1], 1, -4)
local OWNER, CALL, ANSWERED, CHANNEL, LIFE = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5])
local RUNS, SENDS = ARGV[6], ARGV[7]
local call = redis.call
local cursor = 7

local function take()
  cursor = cursor + 1
  return ARGV[cursor]
end

local function take_number()
  return tonumber(take())
end

-- `n` values, as a table.
local function take_many(n)
  local values = {}
  for i = 1, n do values[i] = take() end
  return values
end

local function refuse(kind, text)
  error({ refused = kind, text = text })
end

local time = nil

-- The server's time when the script first asked: seconds and the microseconds after them.
local function server_time()
  time = time or call('TIME')
  return time[1], time[2]
end

local function milliseconds()
  local seconds, micros = server_time()
  return seconds * 1000 + math.floor(micros / 1000)
end

-- Numbers of a partition rise for ever and are near the server's microseconds, so that lists of
-- several partitions can be merged by number. They are below 2^53, so exact as a double.
local last_number = nil

local function next_number()
  if last_number == nil then
    local seconds, micros = server_time()
    local now = seconds * 1000000 + micros
    last_number = tonumber(call('GET', KEYS[1]) or '0')
    if now > last_number then last_number = now - 1 end
  end
  last_number = last_number + 1
  return string.format('%.0f', last_number)
end

local function joined()
  call('ZADD', P .. 'members', 'NX', milliseconds() + LIFE, OWNER)
end

local news = {}

-- Tell every process a piece of news once the script is done.
local function tell(text)
  news[#news + 1] = text
end

-- A command with any number of values: one with many costs far less than many with one.
local function call_with(command, key, values)
  for first = 1, #values, 1000 do
    call(command, key, unpack(values, first, math.min(first + 999, #values)))
  end
end

local function push_all(key, values) call_with('RPUSH', key, values) end

-- Set fields from names and values that the caller passed.
local function set_fields(key, pairs_taken) call_with('HSET', key, pairs_taken) end

local function count(name, by)
  call('HINCRBY', P .. 'figures', name, by)
end

-- The platform of a lane, a chat or an address: the beginning of the name.
local function platform_of(name)
  return string.match(name, '^[^/]*')
end

local function is_among(names, name)
  return names == '*' or string.find(names, '/' .. name .. '/', 1, true) ~= nil
end

-- The platforms that have ever had work in this partition, as a table.
local function all_platforms()
  return call('SMEMBERS', P .. 'platforms')
end

-- The same, but only platforms that are among `platforms`.
local function known_among(platforms)
  local found = {}
  for _, platform in ipairs(all_platforms()) do
    if is_among(platforms, platform) then found[#found + 1] = platform end
  end
  return found
end

local function answer(body)
  local fine, reply = pcall(body)
  if not fine then
    if type(reply) == 'table' and reply.refused then
      return { reply.refused, reply.text }
    end
    error(reply)
  end
  if last_number ~= nil then call('SET', KEYS[1], string.format('%.0f', last_number)) end
  for _, text in ipairs(news) do call('PUBLISH', CHANNEL, text) end
  return reply
end

-- A step that only reads.
local function look(body)
  return answer(body)
end

-- A step that writes. It is done once, however often it is sent: the answer is kept until a later call
-- of the caller says that the answer was heard. A copy that arrives after that is old and does nothing. What is only
-- read for the answer is not kept with it: `read`, if given, adds that.
--
-- The first write is a command that a server without memory refuses: after any other write the server
-- would let the rest pass.
local function once(body, read)
  local function given(reply)
    if read and reply[1] == 'ok' then read(reply) end
    return reply
  end
  local answers = P .. 'answers:' .. OWNER
  local kept = call('HMGET', answers, 'heard', CALL)
  local heard, answered = tonumber(kept[1] or '-1'), tonumber(ANSWERED)
  if tonumber(CALL) <= heard then return { 'stale' } end
  if kept[2] then return given(cmsgpack.unpack(kept[2])) end
  call('HSET', answers, 'heard', math.max(heard, answered))
  if answered > heard then
    local given_up = {}
    for _, number in ipairs(call('HKEYS', answers)) do
      if number ~= 'heard' and tonumber(number) <= answered then given_up[#given_up + 1] = number end
    end
    call_with('HDEL', answers, given_up)
    if math.floor(answered / 256) > math.floor(heard / 256) then call('EXPIRE', answers, 86400) end
  end
  local reply = answer(body)
  call('HSET', answers, CALL, cmsgpack.pack(reply))
  return given(reply)
end
