-- needs: lanes sessions
-- lane, fence, opening. Gives {'ok', message ids}.
return once(function()
  local lane, fence = take(), take()
  check_lane(lane, fence, '')
  if call('EXISTS', tip_at(lane)) == 1 then
    refuse('conflict', 'This key has a session already; end it first.')
  end
  return { 'ok', open_session(take_opening(), lane) }
end)
