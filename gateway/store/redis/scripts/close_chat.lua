-- needs: outbox
-- chat, why nothing can be shown there, now. Gives {'ok', advances}.
return once(function()
  local chat, why, now = take(), take(), take_number()
  call('HSET', P .. 'closed', chat, why)
  return { 'ok', { advance(chat, now, false) } }
end)
