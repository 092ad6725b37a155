-- Rules that people set, a document for each key that ever had some. They are few and change together.
CREATE TABLE pins(
    key   TEXT PRIMARY KEY,
    rules TEXT NOT NULL                   -- JSON
) WITHOUT ROWID;
