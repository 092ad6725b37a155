-- lane, deed, what it counted. Gives {'ok'}.
return once(function()
  local lane, deed = take(), take()
  call('HSET', P .. 'forgotten:' .. lane, deed, take())
  return { 'ok' }
end)
