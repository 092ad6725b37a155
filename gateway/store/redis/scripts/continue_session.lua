-- needs: lanes sessions
-- lane, fence, session, epoch, when it ends, length of the snapshot, compaction, opening.
-- Gives {'ok', message ids, messages in all, tokens in all}.
local function take_over(parent, child, position)
  local taken, tokens = 0, 0
  while true do
    local ids = call('LRANGE', transcript_at(parent), position + taken, position + taken + 999)
    if #ids == 0 then return taken, tokens end
    local keys = {}
    for i, id in ipairs(ids) do keys[i] = P .. 'message:' .. id end
    for _, text in ipairs(call('MGET', unpack(keys))) do
      tokens = tokens + (tonumber(string.match(text, '^%d*')) or 0)
    end
    call('RPUSH', transcript_at(child), unpack(ids))
    taken = taken + #ids
  end
end

return once(function()
  local lane, fence, id, epoch = take(), take(), take(), take()
  local at, snapshot, compaction = take(), take_number(), take()
  local head = check_lane(lane, fence, '')
  check_session(id, epoch, lane)
  check_tip(id, lane)
  local opening = take_opening()
  local child = session_at(opening.id)
  close_session(id, lane, END_COMPRESSION, at)
  call('HSET', session_at(id), 'continuation_id', opening.id)
  local ids = open_session(opening, lane)
  local taken, tokens = take_over(id, opening.id, snapshot)
  local messages = call('HINCRBY', child, 'message_count', taken)
  local all_tokens = call('HINCRBY', child, 'transcript_tokens', tokens)
  call('RPUSH', P .. 'compactions:' .. id, compaction)
  call('RPUSH', P .. 'compactions:' .. opening.id, compaction)
  local turn = P .. 'turn:' .. head
  if call('HGET', turn, 'session') == id then call('HSET', turn, 'session', opening.id) end
  return { 'ok', ids, messages, all_tokens }
end)
