-- needs: outbox
-- row, the platform's id ('': nobody knows it). Gives {'ok'}.
return once(function()
  local id, shown_as = take(), take()
  local state = call('HGET', row_at(id), 'state')
  if state == ROW_STREAMING and shown_as == '' then
    call('HINCRBY', row_at(id), 'ambiguous', 1)
  elseif state == ROW_STREAMING then
    call('HSET', row_at(id), 'platform_message_id', shown_as)
  end
  return { 'ok' }
end)
