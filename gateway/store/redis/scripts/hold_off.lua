-- account, bucket, milliseconds. Gives {'ok'}.
return once(function()
  local at, span = P .. 'silent:' .. take() .. ':' .. take(), take_number()
  if span > call('PTTL', at) then
    call('SET', at, string.format('%.0f', milliseconds() + span), 'PX', string.format('%.0f', span))
  end
  return { 'ok' }
end)
