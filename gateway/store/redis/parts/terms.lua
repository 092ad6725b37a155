-- The inverted index: `stem:<owner>:<term>` is a string of the numbers of the messages that hold the
-- term, eight bytes each, rising: seven for the number (below 2^53), big-endian, so that entries
-- compare as their bytes do, and one that is always 255. The term `*` lists all messages of the owner.
-- `words:<owner>` has the terms that are words, in order: a search looks among them for what a slip of
-- the pen may mean.

local function term_at(owner, term) return P .. 'stem:' .. owner .. ':' .. term end
local function words_at(owner) return P .. 'words:' .. owner end
local function is_word(term) return #term > 3 and not string.find(term, '[%d%*%^]') end

local function packed(id) return struct.pack('>I7B', tonumber(id), 255) end
local function message_of(entry) return string.format('%.0f', (struct.unpack('>I7', entry))) end

-- A list of entries, asked for by place. A short list is read at once, a long one as needed.
local AT_ONCE = 32768

local function entries_of(key)
  local bytes = call('STRLEN', key)
  local whole = bytes <= AT_ONCE and call('GET', key) or nil
  local list = { size = bytes / 8 }
  function list.at(place)
    local first = (place - 1) * 8
    if whole then return string.sub(whole, first + 1, first + 8) end
    return call('GETRANGE', key, first, first + 7)
  end
  -- How many entries are below an entry, and whether the entry is there.
  function list.find(entry)
    local low, high = 0, list.size
    while low < high do
      local middle = math.floor((low + high) / 2)
      if list.at(middle + 1) < entry then low = middle + 1 else high = middle end
    end
    return low, low < list.size and list.at(low + 1) == entry
  end
  return list
end

-- The newest message of an owner whose terms are entered, as an entry; ''.
local function newest_of(owner) return call('GETRANGE', term_at(owner, '*'), -8, -1) end

-- Entries of some messages, rising. Nearly always at the end; what a crash had held up goes to its place. `newer`: the
-- messages are newer than all that the owner's terms were entered for.
local function enter(owner, term, entries, newer)
  if entries == '' then return end
  local key = term_at(owner, term)
  if newer then
    if call('APPEND', key, entries) == #entries and is_word(term) then call('ZADD', words_at(owner), 0, term) end
    return
  end
  local newest = call('GETRANGE', key, -8, -1)
  if newest == '' and is_word(term) then call('ZADD', words_at(owner), 0, term) end
  if newest < string.sub(entries, 1, 8) then return call('APPEND', key, entries) end
  for first = 1, #entries, 8 do
    local entry = string.sub(entries, first, first + 7)
    local below, there = entries_of(key).find(entry)
    if not there then call('SETRANGE', key, below * 8, entry .. call('GETRANGE', key, below * 8, -1)) end
  end
end

local function leave(owner, term, entry)
  local key = term_at(owner, term)
  local below, there = entries_of(key).find(entry)
  if not there then return end
  local whole = call('GET', key)
  local left = string.sub(whole, 1, below * 8) .. string.sub(whole, below * 8 + 9)
  if left ~= '' then return call('SET', key, left) end
  call('DEL', key)
  call('ZREM', words_at(owner), term)
end
