-- needs: restoring
-- n (one), then its version and the book. Gives {'ok'}.
return once(function()
  for _ = 1, take_number() do call('HSET', P .. 'guest_book', 'version', take(), 'book', take()) end
  return restored()
end)
