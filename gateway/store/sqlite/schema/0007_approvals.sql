-- Questions of unfinished items; they end with their item. `chat` is the outbox's lane that they are asked
-- in; `verdict` NULL: nobody has answered.
CREATE TABLE approvals(
    token   TEXT PRIMARY KEY,
    item    INTEGER NOT NULL,             -- inbox.id
    chat    TEXT NOT NULL,
    asked   TEXT NOT NULL,                -- JSON
    verdict TEXT                          -- JSON
) WITHOUT ROWID;
CREATE INDEX approvals_of_item ON approvals(item);
CREATE INDEX approvals_of_chat ON approvals(chat);

-- Buttons under a row, as JSON, and the id of the earlier row whose message it takes the place of.
ALTER TABLE outbox ADD COLUMN buttons TEXT;
ALTER TABLE outbox ADD COLUMN edits TEXT;
