-- needs: lanes outbox
-- lane, the event that the item that asks came by or '', n items with the documents that are left of them, the
-- address of the rows, n rows. Items lose their words, rows go; what is not shown yet, but for answers to that event, never will be. Gives {'ok'}.
return once(function()
  local lane, event = take(), take()
  for _ = 1, take_number() do call('HSET', item_at(take()), 'inbound', take()) end
  local address = take()
  for _, id in ipairs(take_many(take_number())) do
    local key, state, answers, chat, claim = unpack(call('HMGET', row_at(id), 'key', 'state', 'answers', 'chat', 'claim'))
    if key == lane and not (event ~= '' and answers == event) then
      silence(id, state, chat, claim)
      call('ZREM', P .. 'rows', id)
      call('ZREM', P .. 'rows:' .. address, id)
      call('DEL', row_at(id))
    end
  end
  return { 'ok' }
end)
