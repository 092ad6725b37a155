-- Chats that their platform calls by another name than before.
CREATE TABLE chat_names (
    platform TEXT NOT NULL,
    name     TEXT NOT NULL,
    first    TEXT NOT NULL,  -- under which everything is kept; the same for a chat's first name
    later    TEXT,           -- what it is called instead by now
    PRIMARY KEY (platform, name)
) WITHOUT ROWID;
