-- needs: restoring
-- n, then of each file: lane, ref, when, document, digest, its content in m pieces. Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do
    local lane, ref, at, document, digest = take(), take(), take(), take(), take()
    for place = 0, take_number() - 1 do call('HSET', P .. 'content:' .. lane .. ':' .. digest, place, take()) end
    call('HSET', P .. 'files:' .. lane, ref, document)
    call('ZADD', P .. 'filed:' .. lane, at, ref)
  end
  return restored()
end)
