-- name, holder. Gives {'ok'}.
local at, holder = P .. 'lease:' .. take(), take()
if call('GET', at) == holder then call('DEL', at) end
return { 'ok' }
