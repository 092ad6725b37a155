-- needs: reminders chats
-- chat, its first name or '', its present name or ''. A chat with a present name is open.
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
