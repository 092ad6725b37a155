-- The beginning of every script. The first comment of a script names its arguments in their order, and its answer.
--
-- KEYS[1] is `{pNN}:seq`, the partition's counter; every other key of a script has the same prefix and so lives in the
-- same slot. ARGV: the calling process, the number of this call, the highest number that was answered, the channel for
-- news; then the script's own arguments.

local P = string.sub(KEYS[1], 1, -4)
local OWNER, CALL, ANSWERED, CHANNEL = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local call = redis.call
local cursor = 4

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

-- A command with any number of values: one with many costs far less than many with one.
local function call_with(command, key, values)
  for first = 1, #values, 1000 do
    call(command, key, unpack(values, first, math.min(first + 999, #values)))
  end
end

local function push_all(key, values) call_with('RPUSH', key, values) end

-- A step that writes. It is done once, however often it is sent: the answer is kept until a later call
-- of the caller says that the answer was heard. A copy that arrives after that is old and does nothing.
--
-- The first write is a command that a server without memory refuses: after any other write the server
-- would let the rest pass.
local function once(body)
  local answers = P .. 'answers:' .. OWNER
  local kept = call('HMGET', answers, 'heard', CALL)
  local heard, answered = tonumber(kept[1] or '-1'), tonumber(ANSWERED)
  if tonumber(CALL) <= heard then return { 'stale' } end
  if kept[2] then return cmsgpack.unpack(kept[2]) end
  call('HSET', answers, 'heard', math.max(heard, answered))
  if answered > heard then
    local given_up = {}
    for _, number in ipairs(call('HKEYS', answers)) do
      if number ~= 'heard' and tonumber(number) <= answered then given_up[#given_up + 1] = number end
    end
    call_with('HDEL', answers, given_up)
    if math.floor(answered / 256) > math.floor(heard / 256) then call('EXPIRE', answers, 86400) end
  end
  local reply = body()
  call('HSET', answers, CALL, cmsgpack.pack(reply))
  return reply
end
