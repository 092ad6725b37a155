-- The guest book is a folder of notes from now on, as other small state is.
INSERT INTO notes(account, name, value)
SELECT 'guest_book', 'version', CAST(version AS TEXT) FROM guest_book
UNION ALL SELECT 'guest_book', 'book', book FROM guest_book;
DROP TABLE guest_book;
