-- The highest number that anything of this partition has. Gives {'ok'}.
return once(function()
  local highest = take()
  if tonumber(call('GET', KEYS[1]) or '0') < tonumber(highest) then call('SET', KEYS[1], highest) end
  return { 'ok' }
end)
