-- An attempt to bring a database over, a state, a verb, and n words. Nothing is done in a partition that is not in that
-- state of the attempt: whoever was held up does nothing late.
-- 'remove', 'name': keys without their prefix, which go, or get the names that they have without the attempt's.
-- 'next': the next state; none: there is no more to do. Gives {'ok'}.
local attempt, state, verb, words = take(), take(), take(), take_many(take_number())
local mark = P .. 'bringing:' .. attempt
if (call('GET', mark) or '') ~= state then return { 'ok' } end
for _, word in ipairs(words) do
  local staged = P .. 'new:' .. attempt .. ':' .. word
  if verb == 'remove' then
    call('UNLINK', P .. word)
  elseif verb == 'name' and call('EXISTS', staged) == 1 then
    call('RENAME', staged, P .. word)
  elseif verb == 'next' then
    call('SET', mark, word)
  end
end
if verb == 'next' and #words == 0 then call('DEL', mark) end
return { 'ok' }
