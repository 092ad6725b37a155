-- needs: lanes
-- Claims the bypass items that nobody works on, of the platforms that this process runs. Gives {'ok', item…}.
return once(function()
  local reply = { 'ok' }
  for _, platform in ipairs(known_among(RUNS)) do
    for _, id in ipairs(call('ZRANGE', bypass_left_at(platform), 0, -1)) do
      reply[#reply + 1] = begin_item(id)
      call('SADD', P .. 'bypass:' .. OWNER, id)
      joined()
    end
    call('DEL', bypass_left_at(platform))
  end
  return reply
end)
