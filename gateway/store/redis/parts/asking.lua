-- Questions to people: `turn:<item>` holds `asked:<token>` and, once decided, `verdict:<token>`;
-- `asking:<chat>` names the unfinished item of each token of a chat.

-- The name of a lane, or of an address, begins with the name of its chat.
local function asking_at(name) return P .. 'asking:' .. string.match(name, '^[^/]*/[^/]*') end

local function forget_questions(lane, item)
  for _, field in ipairs(call('HKEYS', P .. 'turn:' .. item)) do
    local token = string.match(field, '^asked:(.*)')
    if token then call('HDEL', asking_at(lane), token) end
  end
end
