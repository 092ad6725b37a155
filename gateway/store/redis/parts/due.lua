-- Claims of sessions that are due: "<until> <process>", void once that time has passed or the
-- process is dead.
local function is_claimed(id, now)
  local claim = call('HGET', P .. 'due_claims', id)
  if not claim then return false end
  local till, owner = string.match(claim, '^(%S+) (.*)$')
  local alive = call('ZSCORE', P .. 'members', owner)
  return tonumber(till) > now and alive and tonumber(alive) > milliseconds()
end
