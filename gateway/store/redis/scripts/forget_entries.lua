-- n messages, whose entries have left the index: nothing is owed for them any more. Gives {'ok'}.
for _, id in ipairs(take_many(take_number())) do
  call('DEL', P .. 'gone:' .. id)
  call('SREM', P .. 'gone', id)
end
return { 'ok' }
