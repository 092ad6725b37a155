-- needs: due
-- now, limit. Gives {'ok', id, when…} of open sessions whose time has passed and that nobody has claimed.
return look(function()
  local now, limit, reply, first = take_number(), take_number(), { 'ok' }, 0
  while #reply <= 2 * limit do
    local page = call('ZRANGEBYSCORE', P .. 'due', '-inf', now, 'WITHSCORES', 'LIMIT', first, 100)
    for i = 1, #page, 2 do
      if #reply <= 2 * limit and not is_claimed(page[i], now) then
        reply[#reply + 1] = page[i]
        reply[#reply + 1] = page[i + 1]
      end
    end
    if #page < 200 then break end
    first = first + 100
  end
  return reply
end)
