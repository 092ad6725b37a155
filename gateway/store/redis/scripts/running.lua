-- needs: lanes
-- lane. Gives {'ok', the item that runs, or {}}.
return look(function()
  local id = running_item(take())
  return { 'ok', id and item_facts(id) or {} }
end)
