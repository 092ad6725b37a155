-- needs: sessions
-- limit. Hooks that this process owes, and hooks of dead processes, which it owes from now on.
-- Gives {'ok', {number, the session's fields}…}.
return once(function()
  local limit, first, reply = take_number(), 0, { 'ok' }
  local now = milliseconds()
  while #reply <= limit do
    local page = call('ZRANGE', P .. 'hooks', first, first + 99, 'WITHSCORES')
    for i = 1, #page, 2 do
      local id = page[i]
      local owner = call('HGET', P .. 'hook_owners', id)
      local alive = owner and call('ZSCORE', P .. 'members', owner)
      if owner == OWNER or not alive or tonumber(alive) <= now then
        if #reply > limit then break end
        call('HSET', P .. 'hook_owners', id, OWNER)
        joined()
        reply[#reply + 1] = { page[i + 1], call('HGETALL', session_at(id)) }
      end
    end
    if #page < 200 then break end
    first = first + 100
  end
  return reply
end)
