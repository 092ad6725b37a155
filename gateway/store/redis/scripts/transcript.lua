-- needs: sessions
-- session, position, limit (at most 1,000). Gives {'ok', id, message, id, message…}.
return look(function()
  local id, first, limit = take(), take_number(), take_number()
  local ids, reply = call('LRANGE', transcript_at(id), first, first + limit - 1), { 'ok' }
  if #ids == 0 then return reply end
  local keys = {}
  for i, message in ipairs(ids) do keys[i] = P .. 'message:' .. message end
  for i, text in ipairs(call('MGET', unpack(keys))) do
    reply[#reply + 1] = ids[i]
    reply[#reply + 1] = text
  end
  return reply
end)
