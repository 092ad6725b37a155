-- account, count, then name, '1' or '' (forget), value for each. Writes and forgets notes of an account. Gives {'ok'}.
return once(function()
  local at = P .. 'notes:' .. take()
  for _ = 1, take_number() do
    local name, kept, value = take(), take(), take()
    if kept == '1' then call('HSET', at, name, value) else call('HDEL', at, name) end
  end
  return { 'ok' }
end)
