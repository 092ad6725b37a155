-- chat. Gives {'ok'}.
return once(function()
  call('HDEL', P .. 'closed', take())
  return { 'ok' }
end)
