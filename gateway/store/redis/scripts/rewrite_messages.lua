-- n messages, each with what it is stored as from now on. Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do
    local id, text = take(), take()
    if call('EXISTS', P .. 'message:' .. id) == 1 then call('SET', P .. 'message:' .. id, text) end
  end
  return { 'ok' }
end)
