-- lane, digest, place, piece. Gives {'ok'}.
return once(function()
  local lane, digest, place = take(), take(), take()
  call('HSET', P .. 'content:' .. lane .. ':' .. digest, place, take())
  return { 'ok' }
end)
