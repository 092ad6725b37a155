-- The names of where a session was last spoken in, as a JSON list; NULL: not known.
ALTER TABLE sessions ADD COLUMN places TEXT;
