-- needs: lanes outbox sessions asking
-- lane, now. Ends all items of a lane, and whoever runs it runs it no more. Gives {'ok'}.
return once(function()
  local lane, now = take(), take()
  for _, item in ipairs(call('LRANGE', inbox_at(lane), 0, -1)) do end_turn(item, lane, ITEM_REFUSED, now) end
  call('DEL', inbox_at(lane))
  call('ZREM', suspects_at(platform_of(lane)), lane)
  let_go(lane)
  return { 'ok' }
end)
