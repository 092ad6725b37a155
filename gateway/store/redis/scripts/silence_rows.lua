-- needs: lanes outbox
-- lane, the event that the item that asks came by or '', the address whose rows go as a whole or '', n rows. Rows of
-- the lane lose their words, or go; what is not shown yet, but for answers to that event and what changes them, never
-- will be. Gives {'ok'}.
return once(function()
  local lane, event, address = take(), take(), take()
  for _, id in ipairs(take_many(take_number())) do
    local key, state, answers, chat, claim, edits =
      unpack(call('HMGET', row_at(id), 'key', 'state', 'answers', 'chat', 'claim', 'edits'))
    if edits then answers = call('HGET', row_at(edits), 'answers') end
    local is_answer = event ~= '' and answers == event
    if key == lane and not (is_answer and (address ~= '' or is_among(ROW_UNSENT, state))) then
      silence(id, state, chat, claim)
      if address ~= '' then
        call('ZREM', P .. 'rows', id)
        call('ZREM', P .. 'rows:' .. address, id)
        call('DEL', row_at(id))
      else
        call('HSET', row_at(id), 'text', '')
        call('HDEL', row_at(id), 'file', 'buttons', 'returns')
        if call('HEXISTS', row_at(id), 'error') == 1 then call('HSET', row_at(id), 'error', 'forgotten') end
      end
    end
  end
  return { 'ok' }
end)
