-- Reminders: `reminder:<id>` has the document and what is asked for; `reminders:<key>` orders a key's by their
-- number. Of those that wait or are paused, `reminders_in:<chat>` has the person of each, `reminders_by:<chat>` how many
-- each person has, and `reminders_due:<platform>` the time of each that has one. While a chat is closed its reminders are
-- `parked`, and have no time.

local function reminder_at(id) return P .. 'reminder:' .. id end
local function reminders_at(lane) return P .. 'reminders:' .. lane end
local function reminders_in(chat) return P .. 'reminders_in:' .. chat end
local function reminders_by(chat) return P .. 'reminders_by:' .. chat end
local function reminders_due_at(platform) return P .. 'reminders_due:' .. platform end

local function park(chat)
  for _, id in ipairs(call('HKEYS', reminders_in(chat))) do
    call('HSET', reminder_at(id), 'parked', 1)
    call('ZREM', reminders_due_at(platform_of(chat)), id)
  end
end

-- Put a reminder among those with a time, if it has one and its chat is open.
local function await_time(id, chat)
  local facts = call('HMGET', reminder_at(id), 'due_at', 'parked')
  if facts[1] and facts[2] == '0' then
    call('SADD', P .. 'platforms', platform_of(chat))
    call('ZADD', reminders_due_at(platform_of(chat)), facts[1], id)
  else
    call('ZREM', reminders_due_at(platform_of(chat)), id)
  end
end

local function unpark(chat)
  for _, id in ipairs(call('HKEYS', reminders_in(chat))) do
    call('HSET', reminder_at(id), 'parked', 0)
    await_time(id, chat)
  end
end

-- Put a reminder among a chat's open ones, or take it away from them.
local function set_open(id, chat, person, open)
  if open then
    if call('HSET', reminders_in(chat), id, person) == 1 then call('HINCRBY', reminders_by(chat), person, 1) end
  elseif call('HDEL', reminders_in(chat), id) == 1 then
    if call('HINCRBY', reminders_by(chat), person, -1) < 1 then call('HDEL', reminders_by(chat), person) end
  end
end

-- Take the facts of a reminder that change: version, whether it is open, its time or '', its document.
local function set_reminder(id, chat, person)
  local version, open, due, document = take(), take(), take(), take()
  call('HSET', reminder_at(id), 'version', version, 'open', open, 'reminder', document)
  if due == '' then call('HDEL', reminder_at(id), 'due_at') else call('HSET', reminder_at(id), 'due_at', due) end
  set_open(id, chat, person, open == '1')
  await_time(id, chat)
end

-- What a process reads of a reminder.
local function reminder_facts(id)
  return call('HMGET', reminder_at(id), 'reminder', 'number', 'parked')
end
