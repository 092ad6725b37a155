-- lane, ref, when, document. Gives {'ok', the document that stands under this ref}.
return once(function()
  local lane, ref, at, document = take(), take(), take(), take()
  if call('HSETNX', P .. 'files:' .. lane, ref, document) == 1 then
    call('ZADD', P .. 'filed:' .. lane, at, ref)
  end
  return { 'ok', call('HGET', P .. 'files:' .. lane, ref) }
end)
