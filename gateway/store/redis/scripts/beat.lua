-- needs: lanes outbox members
-- How many attempts a suspect may have had that this process would try now. This process lives. A member without a beat in time is dead, unless nobody could beat: where a member
-- finds that no member has beaten for half a life, the server was away, or its clock was set. Then each
-- member has a whole life from now on for a beat.
-- Gives {'ok', whether the process was still a member, how many members died, the number of the lane that
-- has waited longest or '', the number of the oldest such suspect or '', the chat whose head is due first or '',
-- when it is due, the milliseconds until the first member's time is over, the server's time in milliseconds, how many
-- members live}; of the platforms that this process runs and sends to.
return once(function()
  local allowed, now = take_number(), milliseconds()
  local known = call('ZSCORE', P .. 'members', OWNER)
  local latest = call('ZRANGE', P .. 'members', -1, -1, 'WITHSCORES')[2]
  if known and tonumber(latest) < now + LIFE / 2 then
    for _, owner in ipairs(call('ZRANGE', P .. 'members', 0, -1)) do
      call('ZADD', P .. 'members', now + LIFE, owner)
    end
  end
  call('ZADD', P .. 'members', now + LIFE, OWNER)
  local dead = call('ZRANGEBYSCORE', P .. 'members', '-inf', now, 'LIMIT', 0, 4)
  for _, owner in ipairs(dead) do free_all_of(owner) end
  local chat, when = '', ''
  for _, platform in ipairs(known_among(SENDS)) do
    local due = call('ZRANGE', P .. 'out_due:' .. platform, 0, 0, 'WITHSCORES')
    if due[1] and (chat == '' or tonumber(due[2]) < tonumber(when)) then chat, when = due[1], due[2] end
  end
  local ready, suspect = longest_waiting(), oldest_suspect(allowed)
  local first = call('ZRANGE', P .. 'members', 0, 0, 'WITHSCORES')[2]
  return { 'ok', known and 1 or 0, #dead, ready, suspect, chat, when, tonumber(first) - now, now, call('ZCARD', P .. 'members') }
end)
