-- Gives {'ok', each process that is alive here…}.
return look(function()
  return { 'ok', unpack(call('ZRANGEBYSCORE', P .. 'members', '(' .. string.format('%.0f', milliseconds()), '+inf', 'LIMIT', 0, 1000)) }
end)
