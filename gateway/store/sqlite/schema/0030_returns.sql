-- What the program behind a message is told beside the words of an answer: JSON.
ALTER TABLE outbox ADD COLUMN returns TEXT;
