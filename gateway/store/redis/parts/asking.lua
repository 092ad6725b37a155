-- Questions to people: `turn:<item>` holds `asked:<token>` and, once decided, `verdict:<token>`;
-- `asking:<chat>` says which unfinished item each token of a chat is of.

-- A lane's name, and an address's, begins with its chat's.
local function asking_at(name) return P .. 'asking:' .. string.match(name, '^[^/]*/[^/]*') end

-- What a turn's fields ask can be found in its chat.
local function note_questions(lane, item, fields)
  for _, field in ipairs(fields) do
    local token = string.match(field, '^asked:(.*)')
    if token then call('HSET', asking_at(lane), token, item) end
  end
end

local function forget_questions(lane, item)
  for _, field in ipairs(call('HKEYS', P .. 'turn:' .. item)) do
    local token = string.match(field, '^asked:(.*)')
    if token then call('HDEL', asking_at(lane), token) end
  end
end
