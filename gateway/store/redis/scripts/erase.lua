-- needs: lanes sessions
-- lane, fence or '', n messages, n sessions, n files (each with the digest of a content that no other file has, or ''),
-- 1 if the pins go, too. Takes all of them away. Gives {'ok'}.
return once(function()
  local lane, fence = take(), take()
  if fence ~= '' then check_lane(lane, fence, '') end
  for _, id in ipairs(take_many(take_number())) do
    call('DEL', P .. 'message:' .. id)
    call('SREM', P .. 'unindexed', id)
  end
  for _, id in ipairs(take_many(take_number())) do
    if call('GET', tip_at(lane)) == id then call('DEL', tip_at(lane)) end
    call('DEL', session_at(id), transcript_at(id), P .. 'compactions:' .. id)
    call('ZREM', P .. 'due', id)
    call('HDEL', P .. 'due_claims', id)
    call('ZREM', P .. 'hooks', id)
    call('HDEL', P .. 'hook_owners', id)
    call('ZREM', P .. 'sessions', id)
    call('LREM', P .. 'sessions:' .. lane, 0, id)
  end
  for _ = 1, take_number() do
    local ref, digest = take(), take()
    call('HDEL', P .. 'files:' .. lane, ref)
    call('ZREM', P .. 'filed:' .. lane, ref)
    if digest ~= '' then call('DEL', P .. 'content:' .. lane .. ':' .. digest) end
  end
  if take() == '1' then call('DEL', P .. 'pins:' .. lane) end
  return { 'ok' }
end)
