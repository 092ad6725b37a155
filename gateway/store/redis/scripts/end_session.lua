-- needs: lanes sessions
-- lane, fence, session, epoch, reason, when, 1 and an opening, or 0. Gives {'ok', message ids}.
return once(function()
  local lane, fence, id, epoch, reason, at = take(), take(), take(), take(), take(), take()
  check_lane(lane, fence, '')
  check_session(id, epoch, lane)
  check_tip(id, lane)
  local opening = take() == '1' and take_opening()
  close_session(id, lane, reason, at)
  call('HSET', session_at(id), 'hook', HOOK_PENDING)
  call('ZADD', P .. 'hooks', next_number(), id)
  call('HSET', P .. 'hook_owners', id, OWNER)
  joined()
  return { 'ok', opening and open_session(opening, lane) or {} }
end)
