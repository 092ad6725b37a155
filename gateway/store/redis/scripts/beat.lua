-- needs: lanes outbox members
-- This process lives; whoever has not said so in time is dead.
-- Gives {'ok', whether it was a member still, how many others there are, how many died, the number of the lane that
-- has waited longest or '', of the oldest suspect or '', and of the chat whose head is due first: its name, and when}.
return once(function()
  local now = milliseconds()
  local known = call('ZSCORE', P .. 'members', OWNER)
  call('ZADD', P .. 'members', now + LIFE, OWNER)
  local dead = call('ZRANGEBYSCORE', P .. 'members', '-inf', now, 'LIMIT', 0, 4)
  for _, owner in ipairs(dead) do free_all_of(owner) end
  local due = call('ZRANGE', P .. 'out_due', 0, 0, 'WITHSCORES')
  return { 'ok', known and 1 or 0, call('ZCARD', P .. 'members') - 1, #dead, longest_waiting(), oldest_suspect(), due[1] or '', due[2] or '' }
end)
