-- What outlives sessions: a row for each fact, with the message that said it.
CREATE TABLE facts(
    scope         TEXT NOT NULL,          -- whose it is, as a key
    id            TEXT NOT NULL,
    about         TEXT NOT NULL,
    text          TEXT NOT NULL,
    message_id    TEXT NOT NULL,
    session_id    TEXT NOT NULL,
    said_by       TEXT NOT NULL,
    said_by_name  TEXT NOT NULL,
    said_at       REAL NOT NULL,
    made_at       REAL NOT NULL,
    used_at       REAL NOT NULL,
    uses          INTEGER NOT NULL,
    superseded_by TEXT,
    superseded_at REAL,
    forgotten     INTEGER NOT NULL,
    PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX facts_by_person ON facts(said_by, scope);
CREATE INDEX facts_by_message ON facts(message_id);

-- How often the facts of a scope were changed.
CREATE TABLE memory_versions(
    scope   TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) WITHOUT ROWID;

-- How many messages of a session memory has been given.
ALTER TABLE sessions ADD COLUMN flushed_messages INTEGER NOT NULL DEFAULT 0;
