-- needs: chats
-- chat, what it was called first or '', what it is called instead by now or ''; then it is there.
-- Gives {'ok'}.
return once(function()
  local chat, first, later = take(), take(), take()
  if first ~= '' then call('HSETNX', P .. 'first_names', chat, first) end
  if later ~= '' then
    call('HSET', P .. 'later_names', chat, later)
    reopen(chat)
  end
  return { 'ok' }
end)
