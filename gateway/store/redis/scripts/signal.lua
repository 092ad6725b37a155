-- needs: lanes
-- lane, kind, when. Gives {'ok', whether there was an item for the signal}.
return once(function()
  local lane, kind, at = take(), take(), take()
  local item = call('HGET', lane_at(lane), 'head')
  if not item then
    item = call('LINDEX', inbox_at(lane), 0)
    if not item or call('HGET', item_at(item), 'attempts') == '0' then return { 'ok', 0 } end
  end
  call('HSETNX', P .. 'signals:' .. item, kind, at)
  tell('signal ' .. kind .. ' ' .. OWNER .. ' ' .. lane)
  return { 'ok', 1 }
end)
