-- The beginning of every script. The first comment of a script names its arguments in their order, and its answer.
--
-- KEYS[1] is `{pNN}:seq`, the partition's counter; every other key of a script has the same prefix and so lives in the
-- same slot. ARGV: the calling process, the number of this call, the channel for news; then the script's own arguments.
--
-- A call may come twice, where its answer was lost. `commit` keeps the number of a process's last call; the others come
-- to the same when they are done again.

local P = string.sub(KEYS[1], 1, -4)
local OWNER, CALL, CHANNEL = ARGV[1], ARGV[2], ARGV[3]
local call = redis.call
local cursor = 3

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

-- Appends any number of values: one command with many costs far less than many with one.
local function push_all(key, values)
  for first = 1, #values, 1000 do
    call('RPUSH', key, unpack(values, first, math.min(first + 999, #values)))
  end
end
