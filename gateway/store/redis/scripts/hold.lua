-- name, holder, milliseconds. Takes a lease or renews it. Gives {'ok', whether the holder has it}.
local at, holder, life = P .. 'lease:' .. take(), take(), take()
local present = call('GET', at)
if present and present ~= holder then return { 'ok', 0 } end
call('SET', at, holder, 'PX', life)
return { 'ok', 1 }
