-- needs: outbox
-- item. Gives {'ok', journal, the row of its reply}, both as fields and values.
return look(function()
  local at = P .. 'turn:' .. take()
  local reply = call('HGET', at, 'reply')
  return { 'ok', call('HGETALL', at), reply and call('HGETALL', row_at(reply)) or {} }
end)
