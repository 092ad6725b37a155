-- needs: lanes outbox
-- how many lanes, chats and rows to look at, at most. Gives {'ok', how many items are dead, {platform, items that wait,
-- since when the oldest does, since when the oldest does in a lane that nobody has begun, rows not shown yet, rows
-- being sent, when the oldest row was made}…}; '' stands for no moment.
return look(function()
  local most = take_number()
  local last = most - 1

  local function earlier(a, b)
    return b and (a == '' or tonumber(b) < tonumber(a)) and b or a
  end

  local function lanes_of(platform)
    local lanes = call('ZRANGE', suspects_at(platform), 0, last)
    for _, entry in ipairs(call('XRANGE', ready_at(platform), '-', '+', 'COUNT', most)) do lanes[#lanes + 1] = entry[2][2] end
    return lanes
  end

  local sending, rows_of = {}, {}
  for _, process in ipairs(call('ZRANGE', P .. 'members', 0, last)) do
    local rows = call('SRANDMEMBER', P .. 'sending:' .. process, most)
    for _, id in ipairs(rows) do
      local platform = platform_of(call('HGET', row_at(id), 'chat') or '')
      sending[platform] = (sending[platform] or 0) + 1
      rows_of[platform] = rows_of[platform] or {}
      table.insert(rows_of[platform], id)
    end
  end

  local reply = { 'ok', call('HGET', P .. 'figures', 'dead') or '0' }
  for _, platform in ipairs(all_platforms()) do
    local oldest, idle, made = '', '', ''
    for _, lane in ipairs(lanes_of(platform)) do
      local head = call('LINDEX', inbox_at(lane), 0)
      local facts = head and call('HMGET', item_at(head), 'at', 'attempts') or {}
      oldest = earlier(oldest, facts[1])
      if facts[2] == '0' and call('HEXISTS', lane_at(lane), 'owner') == 0 then idle = earlier(idle, facts[1]) end
    end
    local rows = rows_of[platform] or {}
    for _, chat in ipairs(call('ZRANGE', out_due_at(platform), 0, last)) do rows[#rows + 1] = call('ZRANGE', chat_at(chat), 0, 0)[1] end
    for _, id in ipairs(rows) do made = earlier(made, call('HGET', row_at(id), 'created_at')) end
    local figures = call('HMGET', P .. 'figures', 'waiting:' .. platform, 'unsent:' .. platform)
    reply[#reply + 1] = { platform, figures[1] or '0', oldest, idle, figures[2] or '0', sending[platform] or 0, made }
  end
  return reply
end)
