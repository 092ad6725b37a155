-- Whose words a fact is, where the person did not say it.
ALTER TABLE facts ADD COLUMN origin TEXT NOT NULL DEFAULT '';
