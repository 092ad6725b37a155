-- Until when a platform asked for silence, by the wall clock, and for how many seconds it did: after a
-- start nothing rests longer than that, even if the clock was set back while nothing ran.
CREATE TABLE rests (
    account TEXT NOT NULL,
    bucket  TEXT NOT NULL,
    until   REAL NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (account, bucket)
) WITHOUT ROWID;
