-- needs: lanes outbox
-- item, now, rows. Gives {'ok', advances}.
return once(function()
  local item, now = take(), take()
  local lane, ended = unpack(call('HMGET', item_at(item), 'key', 'outcome'))
  if ended then
    refuse('conflict', 'Item ' .. item .. ' has ended already.')
  end
  end_item(item, lane, ITEM_ANSWERED, now)
  call('SREM', P .. 'bypass:' .. OWNER, item)
  call('ZREM', bypass_left_at(platform_of(lane)), item)
  return { 'ok', emit(take_rows(), tonumber(now), {}) }
end)
