-- needs: outbox
-- now, rows. Gives {'ok', advances}.
return once(function()
  local now = take_number()
  return { 'ok', emit(take_rows(), now, {}) }
end)
