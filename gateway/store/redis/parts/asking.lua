-- Questions to people: `turn:<item>` holds `asked:<token>` and, once decided, `verdict:<token>`;
-- `asking:<chat>` names the unfinished item of each token of a chat.

-- The name of a lane, or of an address, begins with the name of its chat.
local function asking_at(name) return P .. 'asking:' .. string.match(name, '^[^/]*/[^/]*') end

-- End an item with its journal, its questions and the items that went into its turn. Gives the id of its reply, or nil.
local function end_turn(item, lane, outcome, at)
  local turn, absorbed, reply = P .. 'turn:' .. item, P .. 'absorbed:' .. item, nil
  end_item(item, lane, outcome, at)
  for _, id in ipairs(call('SMEMBERS', absorbed)) do end_item(id, lane, ITEM_ABSORBED, at) end
  local journal = call('HGETALL', turn)
  for i = 1, #journal, 2 do
    local token = string.match(journal[i], '^asked:(.*)')
    if token then call('HDEL', asking_at(lane), token) end
    if journal[i] == 'reply' then reply = journal[i + 1] end
  end
  call('DEL', turn, absorbed)
  return reply
end
