-- needs: outbox
-- n rows that were claimed for a caller who is gone: no send was begun. Gives {'ok', advances}.
return once(function()
  local advances = {}
  for _, id in ipairs(take_many(take_number())) do
    local facts = call('HMGET', row_at(id), 'state', 'claim', 'chat')
    if facts[1] == ROW_SENDING and facts[2] == OWNER then
      call('SREM', P .. 'sending:' .. OWNER, id)
      call('HSET', row_at(id), 'state', ROW_PENDING, 'claim', '')
      call('HINCRBY', row_at(id), 'attempts', -1)
      look_at_chat(facts[3], 0)
      advances[#advances + 1] = { facts[3], 'due', '0' }
    end
  end
  return { 'ok', advances }
end)
