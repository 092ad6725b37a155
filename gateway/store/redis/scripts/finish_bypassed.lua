-- needs: lanes outbox
-- item, now, rows. Gives {'ok', advances}.
return once(function()
  local item, now = take(), take()
  if call('HEXISTS', item_at(item), 'outcome') == 1 then
    refuse('conflict', 'Item ' .. item .. ' has ended already.')
  end
  end_item(item, ITEM_ANSWERED, now)
  call('SREM', P .. 'bypass:' .. OWNER, item)
  call('ZREM', bypass_left_at(platform_of(call('HGET', item_at(item), 'key'))), item)
  return { 'ok', emit(take_rows(), tonumber(now), {}) }
end)
