-- needs: lanes sessions
-- lane, fence or '', deed, its counts, the tip or '', the tip's epoch, n messages that go, n that are replaced (each
-- with the message in its place, as `take_messages` takes it), n sessions (each: id, tokens freed, its prompt, its to-do list, 1
-- and a title or 0, n compactions), n files, 1 and pins or 0. Gives {'ok', the deed's counts}.
local function take_replaced()
  local made = {}
  for i = 1, take_number() do made[i] = { old = take(), message = { take(), take() } } end
  return made
end

local function take_session()
  local session = { id = take(), freed = take_number(), prompt = take(), todos = take() }
  session.title = take() == '1' and take()
  session.compactions = take_many(take_number())
  return session
end

local function rewrite_transcript(id, gone)
  local kept, first = {}, 0
  while true do
    local ids = call('LRANGE', transcript_at(id), first, first + 999)
    if #ids == 0 then break end
    for _, message in ipairs(ids) do
      local other = gone[message]
      if other == nil then kept[#kept + 1] = message elseif other then kept[#kept + 1] = other end
    end
    first = first + #ids
  end
  call('DEL', transcript_at(id))
  push_all(transcript_at(id), kept)
  return #kept
end

local function rewrite(session, gone)
  local at = session_at(session.id)
  if call('EXISTS', at) == 0 then return end
  local count = rewrite_transcript(session.id, gone)
  local tokens = math.max(0, tonumber(call('HGET', at, 'transcript_tokens')) - session.freed)
  local fewer = tonumber(call('HGET', at, 'message_count')) - count
  local flushed = math.max(0, tonumber(call('HGET', at, 'flushed_messages') or '0') - fewer)
  call('HSET', at, 'flushed_messages', string.format('%.0f', flushed))
  call('HSET', at, 'message_count', count, 'transcript_tokens', string.format('%.0f', tokens), 'engine_state', '{}')
  call('HSET', at, 'last_prompt_tokens', 0, 'reported_messages', 0, 'system_prompt', session.prompt)
  call('HSET', at, 'todos', session.todos)
  if session.title then call('HSET', at, 'title', session.title) else call('HDEL', at, 'title') end
  call('HINCRBY', at, 'epoch', 1)
  call('HINCRBY', at, 'rewritten', 1)
  call('DEL', P .. 'compactions:' .. session.id)
  push_all(P .. 'compactions:' .. session.id, session.compactions)
end

local function drop_files(lane, refs)
  local files, dropped = P .. 'files:' .. lane, {}
  for _, ref in ipairs(refs) do
    local document = call('HGET', files, ref)
    if document then dropped[cjson.decode(document).digest] = true end
    call('HDEL', files, ref)
    call('ZREM', P .. 'filed:' .. lane, ref)
  end
  for _, document in ipairs(next(dropped) and call('HVALS', files) or {}) do
    dropped[cjson.decode(document).digest] = nil
  end
  for digest in pairs(dropped) do call('DEL', P .. 'content:' .. lane .. ':' .. digest) end
end

return once(function()
  local lane, fence, deed, counts, tip, epoch = take(), take(), take(), take(), take(), take()
  local done = call('HGET', P .. 'forgotten:' .. lane, deed)
  if done then return { 'ok', done } end
  if fence ~= '' then check_lane(lane, fence, '') end
  local present = call('GET', tip_at(lane)) or ''
  if present ~= tip or (tip ~= '' and call('HGET', session_at(tip), 'epoch') ~= epoch) then
    refuse('conflict', 'This conversation was changed by somebody else; look at it again.')
  end
  local gone = {}
  for _, id in ipairs(take_many(take_number())) do gone[id] = false end
  for _, made in ipairs(take_replaced()) do gone[made.old] = store_messages({ made.message })[1] end
  for _ = 1, take_number() do rewrite(take_session(), gone) end
  for id in pairs(gone) do call('DEL', P .. 'message:' .. id) end
  drop_files(lane, take_many(take_number()))
  if take() == '1' then call('SET', P .. 'pins:' .. lane, take()) end
  call('HSET', P .. 'forgotten:' .. lane, deed, counts)
  return { 'ok', counts }
end)
