-- A number. The partition gives only higher ones from now on. Gives {'ok'}.
local number = take()
if tonumber(call('GET', KEYS[1]) or '0') < tonumber(number) then call('SET', KEYS[1], number) end
return { 'ok' }
