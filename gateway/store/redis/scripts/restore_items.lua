-- needs: lanes restoring asking
-- n, then of each item: id, lane, platform, event id, document, when, attempts, 1 if it bypasses the
-- lane, the item that absorbed it or '', outcome or '', when it ended, n fields and values of its turn,
-- n signals and when. They come in their order, so a lane waits from its first unfinished item on.
-- Gives {'ok'}.
local function wait(id, lane)
  call('RPUSH', inbox_at(lane), id)
  if call('LLEN', inbox_at(lane)) == 1 then
    number_is(id)
    schedule(lane, id, true)
  end
end

-- Nobody works on it, as after its process died.
local function bypass(id, lane)
  call('SADD', P .. 'platforms', platform_of(lane))
  call('ZADD', bypass_left_at(platform_of(lane)), id, id)
end

local function restore_item()
  local id, lane, platform, event, document, at = take(), take(), take(), take(), take(), take()
  local attempts, is_bypass, absorbed_by, outcome, ended_at = take(), take() == '1', take(), take(), take()
  number_is(id)
  new_item(lane, platform, event, document, at)
  call('HSET', item_at(id), 'attempts', attempts)
  if is_bypass then call('HSET', item_at(id), 'bypass', 1) end
  if absorbed_by ~= '' then call('HSET', item_at(id), 'absorbed_by', absorbed_by) end
  local turn, signals = take_many(take_number()), take_many(take_number())
  if outcome == 'refused' then
    call('HSET', item_at(id), 'outcome', outcome, 'ended_at', ended_at)
    return
  end
  count('waiting:' .. platform_of(lane), 1)
  if outcome ~= '' then
    end_item(id, outcome, ended_at)
    return
  end
  set_fields(P .. 'turn:' .. id, turn)
  note_questions(lane, id, turn)
  set_fields(P .. 'signals:' .. id, signals)
  if is_bypass then
    bypass(id, lane)
  elseif absorbed_by ~= '' then
    call('SADD', P .. 'absorbed:' .. absorbed_by, id)
  else
    wait(id, lane)
  end
end

return once(function()
  for _ = 1, take_number() do restore_item() end
  return restored()
end)
