-- needs: restoring
-- n, then of each: parent, child, document. Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do
    local parent, child, document = take(), take(), take()
    call('RPUSH', P .. 'compactions:' .. parent, document)
    call('RPUSH', P .. 'compactions:' .. child, document)
  end
  return restored()
end)
