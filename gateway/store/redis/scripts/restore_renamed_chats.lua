-- needs: restoring
-- n, then of each: a name of a chat, the first or '', the one by now or ''. Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do
    local chat, first, later = take(), take(), take()
    if first ~= '' then call('HSET', P .. 'first_names', chat, first) end
    if later ~= '' then call('HSET', P .. 'later_names', chat, later) end
  end
  return restored()
end)
