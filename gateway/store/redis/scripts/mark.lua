-- needs: outbox reminders
-- row, 'sent', 'retry' or 'refused', now; then for 'sent' the platform's id; for 'retry' when the row is
-- due, 1 if the attempt is ambiguous, 1 if the row's message is gone, 1 if the attempt counts; for 'refused'
-- the reason, 1 if the chat is gone, 1 if an answer is withheld, 1 with a row in its place, or 0. Gives {'ok', whether the row is here,
-- advances}.
--
-- Another process may be sending a row whose first sender was taken for dead. The first sender's
-- knowledge is kept (`confirmed`); the chat goes on when the second sender has ended.
local function sent(id, chat, now)
  settle(id, chat, ROW_SENT)
  return { advance(chat, now, false, true) }
end

local function retry(id, chat, now)
  local due, ambiguous, anew, counted = take(), take(), take(), take()
  call('HSET', row_at(id), 'state', ROW_PENDING, 'due_at', due, 'claim', '')
  if anew == '1' then
    call('HDEL', row_at(id), 'platform_message_id')
    call('HSET', row_at(id), 'ambiguous', 0, 'attempts', 0)
  elseif counted == '0' then
    call('HINCRBY', row_at(id), 'attempts', -1)
  end
  if ambiguous == '1' and call('HINCRBY', row_at(id), 'ambiguous', 1) > MOST_DOUBTS then
    due = string.format('%.17g', now) -- of the chat's other rows
  end
  look_at_chat(chat, due)
  return { { chat, 'due', due } }
end

local function refused(id, chat, place, heard, now)
  local why, gone, keeps = take(), take() == '1', take() == '1'
  if gone or keeps then withhold(id, chat, why) else refuse_row(id, chat, why) end
  if gone and not heard then
    call('HSET', P .. 'closed', chat, why)
    park(chat)
  end
  if take() == '1' then
    local row = take_row()
    if call('EXISTS', row_at(row.id)) == 0 then
      insert_row(row.id, row.chat, row.address, row.fields, ROW_PENDING, place)
    end
  end
  return { advance(chat, now, false) }
end

return once(function()
  local id, what, now = take(), take(), take_number()
  local facts = call('HMGET', row_at(id), 'state', 'chat', 'claim', 'place', 'confirmed', 'heard')
  local state, chat, claim = facts[1], facts[2], facts[3] or ''
  if not state then return { 'ok', 0, {} } end
  local mine = claim == OWNER or claim == ''
  local open = state == ROW_SENDING or (what ~= 'retry' and is_among(ROW_PLACED, state))
  if not open then return { 'ok', 1, {} } end
  local shown_as = what == 'sent' and take() or ''
  if shown_as ~= '' then call('HSET', row_at(id), 'platform_message_id', shown_as) end
  if what == 'sent' then call('HSETNX', row_at(id), 'shown_at', now) end
  if not mine then
    if what == 'sent' then call('HSET', row_at(id), 'confirmed', 1) end
    return { 'ok', 1, {} }
  end
  if claim ~= '' then call('SREM', P .. 'sending:' .. claim, id) end
  if what == 'sent' then return { 'ok', 1, sent(id, chat, now) } end
  if facts[5] then
    settle(id, chat, ROW_SENT)
    look_at_chat(chat, 0)
    return { 'ok', 1, { { chat, 'due', '0' } } }
  end
  if what == 'retry' then return { 'ok', 1, retry(id, chat, now) } end
  return { 'ok', 1, refused(id, chat, facts[4], facts[6], now) }
end)
