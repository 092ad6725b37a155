-- account, ticket, grace, n, then n times: bucket, how many, in how long; times in milliseconds.
-- Gives {'ok', milliseconds until the ticket's moment}; 0 uses it up.
--
-- The rule is `gateway.domain.rates.earliest`, on this server's clock. A bucket is a sorted set of
-- moments; a ticket that waits is a member under its own name, a used moment has a name of its own.
local function rate_of(account)
  local bucket, most, span = take(), take_number(), take_number()
  local name = account .. ':' .. bucket
  return { at = P .. 'rate:' .. name, silent = P .. 'silent:' .. name, most = most, span = span }
end

local function free(rate, moment)
  for i = 1, #rate.taken - rate.most + 1 do
    local first, last = rate.taken[i], rate.taken[i + rate.most - 1]
    if last - first < rate.span and last - rate.span < moment and moment < first + rate.span then
      moment = first + rate.span
    end
  end
  return moment
end

local function earliest(rates, moment)
  repeat
    local before = moment
    for _, rate in ipairs(rates) do moment = free(rate, moment) end
  until moment == before
  return moment
end

local function load(rate, now, grace)
  call('ZREMRANGEBYSCORE', rate.at, '-inf', '(' .. (now - math.max(rate.span, grace)))
  rate.taken = {}
  local flat = call('ZRANGE', rate.at, 0, -1, 'WITHSCORES')
  for i = 2, #flat, 2 do rate.taken[#rate.taken + 1] = tonumber(flat[i]) end
end

return once(function()
  local account, ticket, grace, n = take(), take(), take_number(), take_number()
  local now = milliseconds()
  local rates, start, moment = {}, now, nil
  for i = 1, n do
    rates[i] = rate_of(account)
    start = math.max(start, tonumber(call('GET', rates[i].silent) or '0'))
    moment = moment or tonumber(call('ZSCORE', rates[i].at, ticket) or nil)
  end
  if moment and (moment + grace < now or start > math.max(now, moment)) then moment = nil end
  if not moment then
    for _, rate in ipairs(rates) do
      call('ZREM', rate.at, ticket)
      load(rate, now, grace)
    end
    moment = earliest(rates, start)
  end
  local wait = math.max(0, moment - now)
  for _, rate in ipairs(rates) do
    call('ZREM', rate.at, ticket)
    call('ZADD', rate.at, moment, wait > 0 and ticket or 'used ' .. OWNER .. ' ' .. CALL)
    call('PEXPIRE', rate.at, math.max(call('PTTL', rate.at), wait + math.max(rate.span, grace)))
  end
  return { 'ok', wait }
end)
