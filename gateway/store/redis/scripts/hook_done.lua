-- needs: sessions
-- session, in whichever partition it is. Gives {'ok'}.
return once(function()
  local id = take()
  if call('ZREM', P .. 'hooks', id) == 1 then
    call('HDEL', P .. 'hook_owners', id)
    call('HSET', session_at(id), 'hook', HOOK_DONE)
  end
  return { 'ok' }
end)
