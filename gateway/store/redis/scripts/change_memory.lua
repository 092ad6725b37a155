-- scope, version, highest number, count, then the id of each fact that goes; count, then id and document of each that
-- is written. Gives {'ok', whether the memory had this version}.
return once(function()
  local scope, version, last_number = take(), take_number(), take()
  local facts, versions = P .. 'facts:' .. scope, P .. 'facts_version:' .. scope
  if tonumber(call('GET', versions) or '0') ~= version then return { 'ok', 0 } end
  for _ = 1, take_number() do call('HDEL', facts, take()) end
  for _ = 1, take_number() do call('HSET', facts, take(), take()) end
  call('SET', versions, version + 1)
  call('SET', P .. 'facts_number:' .. scope, last_number)
  return { 'ok', 1 }
end)
