-- needs: due sessions
-- now, until when the claim holds, n session ids. Gives {'ok', the fields of the sessions claimed…}.
return once(function()
  local now, till, reply = take_number(), take(), { 'ok' }
  for _, id in ipairs(take_many(take_number())) do
    local at = call('ZSCORE', P .. 'due', id)
    if at and tonumber(at) <= now and not is_claimed(id, now) then
      call('HSET', P .. 'due_claims', id, till .. ' ' .. OWNER)
      joined()
      reply[#reply + 1] = call('HGETALL', session_at(id))
    end
  end
  return reply
end)
