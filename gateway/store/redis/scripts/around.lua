-- needs: terms
-- owner's digest, reach, n messages. The messages of the same talk (sessions that go on from one another) among the
-- owner's messages before and after each, at most `reach` on a side.
-- Gives {'ok', ids with spaces between them…}, in the order of the messages.
local owner, reach = take(), take_number()
local all, reply = entries_of(term_at(owner, '*')), { 'ok' }
local talks, talk_of = {}, {}

local function parent(session)
  return string.match(call('GET', P .. 'session:' .. session) or '', '"parent_id":"(.-)"')
end

-- The first of the sessions that a session goes on from.
local function first_of(session)
  local first, seen = session, {}
  while not talks[session] do
    seen[first] = true
    local above = parent(first)
    if above and not seen[above] then first = above else talks[session] = first end
  end
  return talks[session]
end

-- The talk of a message. Its document names its session before what was said, and quotes within texts are escaped.
local function talk(id)
  if not talk_of[id] then
    local text = call('GET', P .. 'message:' .. id)
    local session = text and string.match(text, '"session_id":"(.-)"')
    talk_of[id] = first_of(session or '')
  end
  return talk_of[id]
end

for _, id in ipairs(take_many(take_number())) do
  local below, there = all.find(packed(id))
  local ids = {}
  local function add(first, last)
    for place = first, last do
      local other = message_of(all.at(place))
      if talk(other) == talk(id) then ids[#ids + 1] = other end
    end
  end
  add(math.max(1, below - reach + 1), below)
  ids[#ids + 1] = id
  local after = there and below + 2 or below + 1
  add(after, math.min(all.size, after + reach - 1))
  reply[#reply + 1] = table.concat(ids, ' ')
end
return reply
