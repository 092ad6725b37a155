-- needs: sessions
-- session, how often it was rewritten, title. Gives {'ok'}.
return once(function()
  local at, rewritten, title = session_at(take()), take_number(), take()
  local as_seen = call('EXISTS', at) == 1 and tonumber(call('HGET', at, 'rewritten') or '0') == rewritten
  if as_seen and not call('HGET', at, 'title') then call('HSET', at, 'title', title) end
  return { 'ok' }
end)
