-- needs: beginning
-- item, lane. Gives {'ok', what the item's turn begins with}.
return look(function()
  return { 'ok', beginning(take(), take(), true) }
end)
