-- Reminders. Columns are what is asked for; the document has the rest. `due_at` NULL: nothing is to come. `chat` is
-- written as `outbox.lane`, `platform` as its beginning. A parked one waits until its chat is open again.
CREATE TABLE reminders(
    seq      INTEGER PRIMARY KEY,
    id       TEXT NOT NULL UNIQUE,
    key      TEXT NOT NULL,
    chat     TEXT NOT NULL,
    platform TEXT NOT NULL,
    person   TEXT NOT NULL,
    number   INTEGER NOT NULL,
    version  INTEGER NOT NULL,
    open     INTEGER NOT NULL,
    due_at   REAL,
    parked   INTEGER NOT NULL DEFAULT 0,
    reminder TEXT NOT NULL                -- JSON
);
CREATE INDEX reminders_due ON reminders(platform, due_at) WHERE due_at IS NOT NULL AND parked = 0;
CREATE INDEX reminders_open ON reminders(chat, number) WHERE open;
CREATE INDEX reminders_of_key ON reminders(key, number);
CREATE INDEX reminders_of_person ON reminders(platform, person);

-- When the platform showed a row.
ALTER TABLE outbox ADD COLUMN shown_at REAL;
