-- Chats that their platform calls by another name than before.
CREATE TABLE renamed_chats (
    lane  TEXT PRIMARY KEY,  -- as in `outbox`
    first TEXT,              -- what the chat was called first, under which everything is kept; NULL: this
    later TEXT               -- what it is called instead by now; NULL: this
) WITHOUT ROWID;
