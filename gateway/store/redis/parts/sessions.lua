-- Sessions: `session:<id>` is a hash with a field for each fact that is not None. `transcript:<id>` lists
-- message ids; `message:<id>` is "<tokens>|<document>" and never changes. `tip:<key>` names the key's
-- present session.

local function session_at(id) return P .. 'session:' .. id end
local function transcript_at(id) return P .. 'transcript:' .. id end
local function tip_at(lane) return P .. 'tip:' .. lane end

-- Gives how many messages the session has. Refuses unless the caller knows the session as it is.
local function check_session(id, epoch, lane)
  local facts = call('HMGET', session_at(id), 'epoch', 'ended_at', 'key', 'message_count')
  if not facts[1] then refuse('conflict', 'Session ' .. id .. ' does not belong to the lane that writes.') end
  if facts[1] ~= epoch or facts[2] then
    refuse('conflict', 'Session ' .. id .. ' was changed by somebody else; look at it again.')
  end
  if facts[3] ~= lane then
    refuse('conflict', 'Session ' .. id .. ' does not belong to the lane that writes.')
  end
  return tonumber(facts[4])
end

-- Take messages as the caller passes them: 'r' and the id of a stored message, 'n' and the document of a
-- new message, or 'i' and the document of a new message that a search should find.
local function take_messages()
  local messages = {}
  for i = 1, take_number() do messages[i] = { take(), take() } end
  return messages
end

local function store_messages(messages)
  local ids, unindexed = {}, {}
  for i, message in ipairs(messages) do
    if message[1] == 'r' then
      ids[i] = message[2]
    else
      local id = next_number() .. string.match(P, 'p%d+')
      call('SET', P .. 'message:' .. id, message[2])
      if message[1] == 'i' then unindexed[#unindexed + 1] = id end
      ids[i] = id
    end
  end
  call_with('SADD', P .. 'unindexed', unindexed)
  return ids
end

-- A session is due at another time. The caller sets its field.
local function await_expiry(id, at)
  call('HDEL', P .. 'due_claims', id)
  call('ZADD', P .. 'due', at, id)
end

local function expires(id, at)
  if at == '' then
    call('HDEL', P .. 'due_claims', id)
    call('ZREM', P .. 'due', id)
    call('HDEL', session_at(id), 'expires_at')
  else
    await_expiry(id, at)
    call('HSET', session_at(id), 'expires_at', at)
  end
end

-- Take an append's changes of the session, as the caller passes them.
local function take_patch()
  local patch = { tokens = take(), cost = take(), at = take(), expires = take() }
  patch.added = take_many(take_number())
  patch.set = take_many(take_number())
  return patch
end

-- Take model calls as the caller passes them: when, and a document.
local function take_ledger()
  local entries = {}
  for i = 1, take_number() do entries[i] = { take(), take() } end
  return entries
end

local function enter_calls(lane, calls)
  for _, entry in ipairs(calls) do
    local document = next_number() .. '|' .. entry[2]
    call('ZADD', P .. 'ledger', entry[1], document)
    call('ZADD', P .. 'ledger:' .. string.gsub(lane, '/helper=[^/]*$', ''), entry[1], document)
  end
end

local function take_step()
  local step = { session = take(), epoch = take(), after = take() }
  step.messages, step.patch, step.ledger = take_messages(), take_patch(), take_ledger()
  return step
end

-- Gives how many messages the step's session has. Refuses unless the caller knows the session as it is.
local function check_step(step, lane)
  local known = check_session(step.session, step.epoch, lane)
  if step.after ~= '' and tonumber(step.after) ~= known then
    refuse('conflict', 'Session ' .. step.session .. ' holds other messages than this turn knows.')
  end
  return known
end

-- The fields and values that a patch gives a session that holds so many messages.
local function patched(at, patch, messages)
  local names, fields = { 'last_active_at', 'transcript_tokens' }, patch.set
  local function set(name, value)
    fields[#fields + 1] = name
    fields[#fields + 1] = value
  end
  for i = 1, #patch.added, 2 do names[#names + 1] = patch.added[i] end
  local present = call('HMGET', at, unpack(names))
  set('message_count', messages)
  set('transcript_tokens', string.format('%.0f', (present[2] or 0) + patch.tokens))
  for i = 3, #names do set(names[i], string.format('%.0f', (present[i] or 0) + patch.added[(i - 2) * 2])) end
  if tonumber(present[1]) < tonumber(patch.at) then set('last_active_at', patch.at) end
  if patch.expires ~= '' then set('expires_at', patch.expires) end
  return fields
end

-- Add a step to a session that `check_step` found to hold `known` messages.
local function append(step, lane, known)
  local at, patch = session_at(step.session), step.patch
  local ids = store_messages(step.messages)
  push_all(transcript_at(step.session), ids)
  set_fields(at, patched(at, patch, known + #ids))
  if patch.cost ~= '0' then call('HINCRBYFLOAT', at, 'cost_usd', patch.cost) end
  if patch.expires ~= '' then await_expiry(step.session, patch.expires) end
  enter_calls(lane, step.ledger)
  return { step.session, known, ids }
end

-- Take a new session as the caller passes it: id, expiry, n fields and values, its messages.
local function take_opening()
  local opening = { id = take(), expires = take() }
  opening.fields = take_many(take_number())
  opening.messages = take_messages()
  if call('EXISTS', session_at(opening.id)) == 1 then
    refuse('conflict', 'There is a session ' .. opening.id .. ' already.')
  end
  return opening
end

local function open_session(opening, lane)
  local ids = store_messages(opening.messages)
  push_all(transcript_at(opening.id), ids)
  set_fields(session_at(opening.id), opening.fields)
  if opening.expires ~= '' then expires(opening.id, opening.expires) end
  call('SET', tip_at(lane), opening.id)
  call('LPUSH', P .. 'sessions:' .. lane, opening.id)
  call('ZADD', P .. 'sessions', next_number(), opening.id)
  return ids
end

local function check_tip(id, lane)
  if call('GET', tip_at(lane)) ~= id then
    refuse('conflict', 'Session ' .. id .. ' is not its key\'s present one.')
  end
end

local function close_session(id, lane, reason, at)
  call('HINCRBY', session_at(id), 'epoch', 1)
  call('HSET', session_at(id), 'ended_at', at, 'end_reason', reason)
  call('ZREM', P .. 'due', id)
  call('HDEL', P .. 'due_claims', id)
  call('DEL', tip_at(lane))
end
