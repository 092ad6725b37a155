-- needs: sessions
-- lane. Gives {'ok', the fields of its present session}.
return look(function()
  local id = call('GET', tip_at(take()))
  return { 'ok', id and call('HGETALL', session_at(id)) or {} }
end)
