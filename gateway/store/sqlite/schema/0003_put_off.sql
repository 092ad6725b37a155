-- For how many seconds a row was put off when `due_at` was set; NULL: not known. After a start no row
-- waits longer than that, even if the clock was set back while nothing ran.
ALTER TABLE outbox ADD COLUMN put_off_for REAL;
