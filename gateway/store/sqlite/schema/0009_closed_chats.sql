-- Chats in which nothing can be shown any more, until a message comes from them.
CREATE TABLE closed_chats (
    lane   TEXT PRIMARY KEY,  -- as in `outbox`
    reason TEXT NOT NULL
) WITHOUT ROWID;
