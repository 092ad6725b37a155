-- needs: sessions
-- session. Gives {'ok', whether the session is here}.
return once(function()
  local id = take()
  if call('EXISTS', session_at(id)) == 0 then return { 'ok', 0 } end
  if call('ZREM', P .. 'hooks', id) == 1 then
    call('HDEL', P .. 'hook_owners', id)
    call('HSET', session_at(id), 'hook', HOOK_DONE)
  end
  return { 'ok', 1 }
end)
