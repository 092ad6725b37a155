-- Whether a message from the chat was accepted since the row was handed out: then a refusal that says that
-- the chat is gone says something old.
ALTER TABLE outbox ADD COLUMN heard INTEGER NOT NULL DEFAULT 0;
