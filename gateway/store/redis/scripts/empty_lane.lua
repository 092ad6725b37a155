-- needs: lanes outbox sessions asking
-- lane, now. Ends all items of a lane, and whoever runs it runs it no more. Gives {'ok'}.
return once(function()
  local lane, now = take(), take()
  for _, item in ipairs(call('LRANGE', inbox_at(lane), 0, -1)) do
    for _, id in ipairs(call('SMEMBERS', P .. 'absorbed:' .. item)) do end_item(id, ITEM_ABSORBED, now) end
    call('DEL', P .. 'absorbed:' .. item)
    end_item(item, ITEM_REFUSED, now)
    forget_questions(lane, item)
    call('DEL', P .. 'turn:' .. item)
  end
  call('DEL', inbox_at(lane))
  call('ZREM', suspects_at(platform_of(lane)), lane)
  let_go(lane)
  return { 'ok' }
end)
