-- needs: lanes outbox
-- lane, the event that the item that asks came by or '', n items with the documents that are left of them, the
-- address of the rows, n rows. Items lose their words, rows go; what is not shown yet, but for answers to that event, never will be. Gives {'ok'}.
return once(function()
  local lane, event = take(), take()
  for _ = 1, take_number() do call('HSET', item_at(take()), 'inbound', take()) end
  local address = take()
  for _, id in ipairs(take_many(take_number())) do
    local facts = call('HMGET', row_at(id), 'key', 'state', 'answers', 'chat', 'claim')
    local state = facts[2]
    if facts[1] == lane and not (event ~= '' and facts[3] == event) then
      if state == ROW_STREAMING or state == ROW_PENDING or state == ROW_SENDING then
        refuse_row(id, facts[4], 'forgotten')
        if facts[5] and facts[5] ~= '' then call('SREM', P .. 'sending:' .. facts[5], id) end
        look_at_chat(facts[4], 0)
      end
      call('ZREM', P .. 'rows', id)
      call('ZREM', P .. 'rows:' .. address, id)
      call('DEL', row_at(id))
    end
  end
  return { 'ok' }
end)
