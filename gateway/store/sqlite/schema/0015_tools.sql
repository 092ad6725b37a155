-- JSON: the names of the tools that the session's prompts have shown, in their order; NULL: none yet.
ALTER TABLE sessions ADD COLUMN tools TEXT;
