-- What messages mean, where an embedding model is configured: the signs of a vector, and its numbers as bytes. A vector
-- goes with its message, whoever deletes that.
CREATE TABLE message_vectors(
    id      INTEGER PRIMARY KEY,
    signs   BLOB NOT NULL,
    numbers BLOB NOT NULL
) STRICT;
CREATE TRIGGER message_vectors_go AFTER DELETE ON messages BEGIN
    DELETE FROM message_vectors WHERE id = old.id;
END;
