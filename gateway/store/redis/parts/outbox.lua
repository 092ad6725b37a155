-- The outbox: `out:<chat>` orders the unfinished rows of a chat by their place; `row:<id>` is a row.
-- `rows` and `rows:<address>` are the history. `sending:<process>` holds the rows that a process sends;
-- `out_due:<platform>` holds the chats whose head is to be looked at, and when. A row in the state
-- `sending` with an empty `claim` was left by a process that died. A reply that streams has no place.
-- `closed` holds the chats in which nothing can be shown any more, and why (parts/chats.lua opens them).

local function row_at(id) return P .. 'row:' .. id end
local function chat_at(chat) return P .. 'out:' .. chat end

local function out_due_at(chat) return P .. 'out_due:' .. platform_of(chat) end

local function look_at_chat(chat, at)
  call('SADD', P .. 'platforms', platform_of(chat))
  call('ZADD', out_due_at(chat), at, chat)
end

local function settle(id, chat, state)
  call('HSET', row_at(id), 'state', state)
  call('ZREM', chat_at(chat), id)
  count('unsent:' .. platform_of(chat), -1)
end

local function refuse_row(id, chat, why)
  call('HSET', row_at(id), 'error', why)
  settle(id, chat, ROW_REFUSED)
end

-- End a row that could not be shown, and may be one day if it is an answer.
local function withhold(id, chat, why)
  local facts = call('HMGET', row_at(id), 'kind', 'file', 'edits')
  if facts[3] or not (facts[2] or is_among(ROW_KEPT, facts[1])) then return refuse_row(id, chat, why) end
  call('HSET', row_at(id), 'error', why)
  settle(id, chat, ROW_WITHHELD)
end

-- Fields and values that the caller passed, by name.
local function named(pairs_taken)
  local facts = {}
  for i = 1, #pairs_taken, 2 do facts[pairs_taken[i]] = pairs_taken[i + 1] end
  return facts
end

-- The place of a row with this number: its own where nothing waits, else in the next round that its conversation has no
-- row in. What nobody waits for comes behind all others until it is claimed.
local function place_from(chat, facts, seq)
  if facts.kind == 'reminder' or string.sub(facts.answers or '', 1, #EVENT_SCHEDULED) == EVENT_SCHEDULED then
    return string.format('%.0f', seq + MOST_PLACE)
  end
  local waiting = call('ZRANGEBYSCORE', chat_at(chat), '-inf', '(' .. MOST_PLACE, 'WITHSCORES')
  if #waiting == 0 then return seq end
  local after, sending = 0, nil
  for i = 1, #waiting, 2 do
    local place, others = tonumber(waiting[i + 1]), call('HMGET', row_at(waiting[i]), 'key', 'state')
    if others[1] == facts.key then after = place end
    if others[2] == ROW_SENDING then sending = place end
  end
  after = math.max(after, sending or tonumber(waiting[2]))
  local first = (math.floor(after / (2 * MOST_IN_ROUND)) + 1) * 2 * MOST_IN_ROUND
  if facts.kind == 'notice' then first = first + MOST_IN_ROUND end
  local last = call(
    'ZREVRANGEBYSCORE', chat_at(chat), '(' .. first + MOST_IN_ROUND, first, 'WITHSCORES', 'LIMIT', 0, 1
  )
  return string.format('%.0f', last[2] and last[2] + 1 or first)
end

local function insert_row(id, chat, address, fields, state, place)
  local seq = next_number()
  place = place or place_from(chat, named(fields), seq)
  for _, each in ipairs({ 'state', state, 'chat', chat, 'place', place }) do fields[#fields + 1] = each end
  set_fields(row_at(id), fields)
  if state ~= ROW_STREAMING then call('ZADD', chat_at(chat), place, id) end
  call('ZADD', P .. 'rows', seq, id)
  call('ZADD', P .. 'rows:' .. address, seq, id)
  count('unsent:' .. platform_of(chat), 1)
end

-- Give a row that edits an earlier one the earlier row's message, which is known by now, or never will be.
local function place_edit(id, edited)
  local shown_as = call('HGET', row_at(edited), 'platform_message_id')
  if shown_as then call('HSETNX', row_at(id), 'platform_message_id', shown_as) end
end

local HEAD_FACTS = { 'state', 'due_at', 'claim', 'confirmed', 'edits', 'ambiguous', 'place', 'attempts', 'heard' }

local function is_in_doubt(facts)
  return is_among(ROW_WAITING, facts[1] or '') and tonumber(facts[6] or '0') > MOST_DOUBTS
end

-- The row that is next in a chat whose earliest row, of these facts, is much in doubt: the earliest of the others, if
-- that is being sent, or if the first is not due. Gives the row, its facts, and when the first is due.
local function beside(chat, first, facts, now, shown)
  local due = shown and now or tonumber(facts[2])
  for _, id in ipairs(call('ZRANGE', chat_at(chat), 1, -1)) do
    local others = call('HMGET', row_at(id), unpack(HEAD_FACTS))
    if not is_in_doubt(others) then
      if due > now or others[1] == ROW_SENDING then return id, others, due end
      break
    end
  end
  facts[2] = due
  return first, facts, due
end

-- Claim the chat's earliest unfinished row if the row is due at `now`. With `adopting`, a row that a dead
-- process was sending is claimed, too, as ambiguous. If this process does not send to the platform, the
-- processes that do are told. With `shown` another row of the chat was just shown. Gives {chat, 'row', …} or
-- {chat, 'due', when} or {chat, 'none'}.
local function advance(chat, now, adopting, shown)
  local closed = call('HGET', P .. 'closed', chat)
  while true do
    local id = call('ZRANGE', chat_at(chat), 0, 0)[1]
    if not id then
      call('ZREM', out_due_at(chat), chat)
      return { chat, 'none' }
    end
    local facts, again_at = call('HMGET', row_at(id), unpack(HEAD_FACTS)), math.huge
    if not closed and is_in_doubt(facts) then id, facts, again_at = beside(chat, id, facts, now, shown) end
    local due, waits = tonumber(facts[2]), is_among(ROW_WAITING, facts[1] or '')
    local left = facts[1] == ROW_SENDING and facts[3] == ''
    if left and facts[4] then
      settle(id, chat, ROW_SENT) -- the row's first sender knows that the row was shown
    elseif closed and (waits or left) then
      withhold(id, chat, closed)
    elseif (waits or left) and not is_among(SENDS, platform_of(chat)) then
      look_at_chat(chat, waits and due or 0)
      tell('rows ' .. string.match(P, '%d+') .. ' ' .. OWNER .. ' ' .. platform_of(chat))
      return { chat, 'none' }
    elseif waits and due > now then
      local at = string.format('%.17g', math.min(due, again_at))
      look_at_chat(chat, at)
      return { chat, 'due', at }
    elseif waits or (left and adopting) then
      if left then call('HINCRBY', row_at(id), 'ambiguous', 1) end
      if facts[5] then place_edit(id, facts[5]) end
      call('HSET', row_at(id), 'state', ROW_SENDING, 'claim', OWNER, 'attempts', (facts[8] or 0) + 1)
      if facts[9] then call('HDEL', row_at(id), 'heard') end
      if tonumber(facts[7]) > MOST_PLACE then
        local place = string.format('%.0f', facts[7] - MOST_PLACE)
        call('HSET', row_at(id), 'place', place)
        call('ZADD', chat_at(chat), place, id)
      end
      call('SADD', P .. 'sending:' .. OWNER, id)
      call('ZREM', out_due_at(chat), chat)
      joined()
      return { chat, 'row', call('HGETALL', row_at(id)) }
    elseif left then
      return { chat, 'due', '0' }
    else
      call('ZREM', out_due_at(chat), chat)
      return { chat, 'none' }
    end
  end
end

-- Refuse a row whose words are forgotten, if the row is not shown yet. Gives whether that was so.
local function silence(id, state, chat, claim)
  if state == ROW_WITHHELD then call('HSET', row_at(id), 'state', ROW_REFUSED) end
  if not is_among(ROW_UNSENT, state) then return false end
  refuse_row(id, chat, 'forgotten')
  if claim and claim ~= '' then call('SREM', P .. 'sending:' .. claim, id) end
  look_at_chat(chat, 0)
  return true
end

-- Take a row as the caller passes it: id, chat, address, then n fields and values.
local function take_row()
  local row = { id = take(), chat = take(), address = take() }
  row.fields = take_many(take_number())
  return row
end

local function take_rows()
  local rows = {}
  for i = 1, take_number() do rows[i] = take_row() end
  return rows
end

-- Store a row. A row whose id is known is not stored twice; a streaming row gets its final text, and one that was
-- withheld goes out anew. Gives the row's chat.
local function store_row(row)
  local state, chat = unpack(call('HMGET', row_at(row.id), 'state', 'chat'))
  if not state then
    insert_row(row.id, row.chat, row.address, row.fields, ROW_PENDING)
  elseif state == ROW_STREAMING or state == ROW_WITHHELD then
    local final = named(row.fields)
    local place = place_from(row.chat, final, next_number())
    call('HSET', row_at(row.id), 'state', ROW_PENDING, 'kind', final.kind, 'text', final.text, 'due_at', final.due_at)
    call('HSET', row_at(row.id), 'place', place)
    call('ZADD', chat_at(row.chat), place, row.id)
    if state == ROW_WITHHELD then
      call('HSET', row_at(row.id), 'ambiguous', 0, 'created_at', final.created_at, 'claim', '')
      call('HDEL', row_at(row.id), 'platform_message_id', 'error', 'confirmed')
      count('unsent:' .. platform_of(row.chat), 1)
    end
    if final.platform_message_id then
      call('HSETNX', row_at(row.id), 'platform_message_id', final.platform_message_id)
    end
  end
  return chat or row.chat
end

-- Store rows in their order and advance each chat once, the chats of `also`, too.
local function emit(rows, now, also)
  local chats, seen, advances = {}, {}, {}
  local function touch(chat)
    if not seen[chat] then
      seen[chat] = true
      chats[#chats + 1] = chat
    end
  end
  for _, row in ipairs(rows) do touch(store_row(row)) end
  for _, chat in ipairs(also) do touch(chat) end
  for i, chat in ipairs(chats) do advances[i] = advance(chat, now, false) end
  return advances
end

-- End a reply that never got its text. Gives the reply's chat, or nil.
local function drop_streaming(id)
  local facts = call('HMGET', row_at(id), 'state', 'chat')
  if facts[1] ~= ROW_STREAMING then return nil end
  settle(id, facts[2], ROW_REFUSED)
  call('HSET', row_at(id), 'error', 'its turn ended without it')
  return facts[2]
end
