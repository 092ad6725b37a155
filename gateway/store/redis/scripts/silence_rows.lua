-- needs: lanes outbox
-- lane, the event that the item that asks came by or '', n rows. Rows of the lane that have ended lose their words;
-- what is not shown yet, but for answers to that event, never will be. Gives {'ok'}.
return once(function()
  local lane, event = take(), take()
  for _, id in ipairs(take_many(take_number())) do
    local facts = call('HMGET', row_at(id), 'key', 'state', 'answers', 'chat', 'claim')
    local state = facts[2]
    local waits = state == ROW_STREAMING or state == ROW_PENDING or state == ROW_SENDING
    if facts[1] == lane and not (waits and event ~= '' and facts[3] == event) then
      if waits then
        refuse_row(id, facts[4], 'forgotten')
        if facts[5] and facts[5] ~= '' then call('SREM', P .. 'sending:' .. facts[5], id) end
        look_at_chat(facts[4], 0)
      end
      call('HSET', row_at(id), 'text', '')
      call('HDEL', row_at(id), 'file', 'buttons')
      if call('HEXISTS', row_at(id), 'error') == 1 then call('HSET', row_at(id), 'error', 'forgotten') end
    end
  end
  return { 'ok' }
end)
