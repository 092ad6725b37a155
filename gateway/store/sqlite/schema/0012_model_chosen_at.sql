-- The provider at which a person chose the session's model; NULL: nobody did.
ALTER TABLE sessions ADD COLUMN model_chosen_at TEXT;
