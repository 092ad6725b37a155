-- version, book. Replaces the book whose version is one less. Gives {'ok', whether that book was there}.
return once(function()
  local version, book, at = take_number(), take(), P .. 'guest_book'
  if tonumber(call('HGET', at, 'version') or '0') ~= version - 1 then return { 'ok', 0 } end
  call('HSET', at, 'version', version, 'book', book)
  return { 'ok', 1 }
end)
