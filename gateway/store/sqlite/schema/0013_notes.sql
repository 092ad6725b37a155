-- What a platform's adapter remembers of its account, such as how far it has read.
CREATE TABLE notes (
    account TEXT NOT NULL,
    name    TEXT NOT NULL,
    value   TEXT NOT NULL,
    PRIMARY KEY (account, name)
) WITHOUT ROWID;
