-- Files that came with messages or were made for them. A content lies apart from what is known of it, and
-- is read only when it is shown.
CREATE TABLE files(
    key    TEXT NOT NULL,
    ref    TEXT NOT NULL,                 -- how its adapter names it, or who made it
    digest TEXT NOT NULL,                 -- SHA-256 of the content, in hex
    name   TEXT NOT NULL,
    mime   TEXT NOT NULL,
    size   INTEGER NOT NULL,
    at     REAL NOT NULL,
    PRIMARY KEY (key, ref)
) WITHOUT ROWID;
CREATE INDEX files_by_time ON files(key, at, ref);
CREATE TABLE contents(
    key     TEXT NOT NULL,
    digest  TEXT NOT NULL,
    content BLOB NOT NULL,
    PRIMARY KEY (key, digest)
);
-- The file that a row shows beside its text.
ALTER TABLE outbox ADD COLUMN file TEXT;  -- JSON
