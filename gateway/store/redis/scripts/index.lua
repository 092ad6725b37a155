-- owner's digest, message, its number, 1 if these are its last terms, n terms. Gives {'ok'}.
return once(function()
  local owner, id, number, last = take(), take(), take(), take()
  for _, term in ipairs(take_many(take_number())) do
    call('ZADD', P .. 'term:' .. owner .. ':' .. term, number, id)
  end
  call('SADD', P .. 'owners', owner)
  if last == '1' then call('SREM', P .. 'unindexed', id) end
  return { 'ok' }
end)
