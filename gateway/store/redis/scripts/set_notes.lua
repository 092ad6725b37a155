-- folder; n notes that must be as they were (name, 1 or 0, text); n notes (the same; 0: it goes). Gives {'ok', whether
-- they were, and the notes are written}.
return once(function()
  local folder = take()
  local at = folder == 'guest_book' and P .. 'guest_book' or P .. 'notes:' .. folder
  for _ = 1, take_number() do
    local now, there, text = call('HGET', at, take()), take() == '1', take()
    if now ~= (there and text) then return { 'ok', 0 } end
  end
  for _ = 1, take_number() do
    local name, kept, text = take(), take(), take()
    if kept == '1' then call('HSET', at, name, text) else call('HDEL', at, name) end
  end
  return { 'ok', 1 }
end)
