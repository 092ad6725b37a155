-- needs: outbox
-- n row ids. Gives {'ok', {fields and values}…}.
return look(function()
  local reply = { 'ok' }
  for i, id in ipairs(take_many(take_number())) do reply[i + 1] = call('HGETALL', row_at(id)) end
  return reply
end)
