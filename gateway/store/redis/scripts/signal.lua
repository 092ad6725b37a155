-- needs: lanes
-- lane, kind, when. Gives {'ok', whether there was an item for the signal}.
return once(function()
  local lane, kind, at = take(), take(), take()
  local item = running_item(lane)
  if not item then return { 'ok', 0 } end
  call('HSETNX', P .. 'signals:' .. item, kind, at)
  tell('signal ' .. kind .. ' ' .. OWNER .. ' ' .. lane)
  return { 'ok', 1 }
end)
