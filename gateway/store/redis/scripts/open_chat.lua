-- needs: reminders chats
-- chat. Gives {'ok'}.
return once(function()
  reopen(take())
  return { 'ok' }
end)
