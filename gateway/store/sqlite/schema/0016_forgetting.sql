-- How often messages of a session were forgotten: who holds its transcript reads it anew.
ALTER TABLE sessions ADD COLUMN rewritten INTEGER NOT NULL DEFAULT 0;

-- What was forgotten, as counts: the id of a deed is made of its cause, so that none is done twice.
CREATE TABLE forgotten (
    deed   TEXT PRIMARY KEY,
    key    TEXT NOT NULL,
    at     REAL NOT NULL,
    counts TEXT NOT NULL                  -- JSON
) WITHOUT ROWID;

-- Forgetting goes through all that a key ever sent.
CREATE INDEX inbox_of_key ON inbox(key) WHERE outcome IS NOT NULL;

-- Remains of deleted rows may lie in unused parts of a file of an earlier Legato.
INSERT INTO meta(name, value) SELECT 'scrub_owed', 2 WHERE EXISTS (SELECT 1 FROM inbox);
