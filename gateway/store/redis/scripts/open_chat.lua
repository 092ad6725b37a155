-- needs: reminders chats
-- chat. Gives {'ok', 1 if it was closed, else 0}.
return once(function()
  return { 'ok', reopen(take()) }
end)
