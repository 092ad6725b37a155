-- Who was let in by a code, and who asks: one document, which is read for strangers only.
CREATE TABLE guest_book(
    id      INTEGER PRIMARY KEY CHECK (id = 1),
    version INTEGER NOT NULL,
    book    TEXT NOT NULL                 -- JSON
);
