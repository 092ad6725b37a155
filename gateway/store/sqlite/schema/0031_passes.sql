-- What a compaction did (JSON): which messages stayed, became notes or were shortened, and what that took.
ALTER TABLE compactions ADD COLUMN work TEXT;
