-- needs: lanes
-- item. Gives {'ok', whether it was dead}: then it is not any more.
return once(function()
  local id = take()
  if call('HGET', item_at(id), 'outcome') ~= ITEM_DEAD then return { 'ok', 0 } end
  call('HSET', item_at(id), 'outcome', ITEM_WITHDRAWN)
  call('LREM', P .. 'dead', 1, id)
  count('dead', -1)
  return { 'ok', 1 }
end)
