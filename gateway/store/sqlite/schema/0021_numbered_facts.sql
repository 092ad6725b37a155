-- By which people name a fact; 0: none yet, the next change of its memory gives it one.
ALTER TABLE facts ADD COLUMN number INTEGER NOT NULL DEFAULT 0;
-- The highest number that a fact of the scope ever had.
ALTER TABLE memory_versions ADD COLUMN last_number INTEGER NOT NULL DEFAULT 0;
