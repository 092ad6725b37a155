"""The step from tables with columns to a table for each kind of record: every fact is read as it lay, and put as a
record. What follows from facts is made anew by what makes it otherwise; the entries of the search index stay.

All of it happens in the transaction of its caller, so a file is of the one layout or of the other.
"""

from __future__ import annotations

from typing import Final

import apsw

from gateway.store.kinds import REST, Rest
from gateway.store.space import Space
from gateway.store.sqlite import former
from gateway.store.sqlite.connection import Connection, many, one
from gateway.store.sqlite.records import WrittenRecords, lay_out
from gateway.store.steps import moving

# Messages of a Redis store have numbers above all others, which count on from there no more.
_FOREIGN: Final = f"""
CREATE TEMP TABLE renumbered AS
    SELECT id AS old, row_number() OVER (ORDER BY id) + (SELECT coalesce(max(id), 0) FROM messages
    WHERE id < {former.FOREIGN}) AS new FROM messages WHERE id >= {former.FOREIGN};
CREATE UNIQUE INDEX temp.renumbered_old ON renumbered(old);
UPDATE transcript SET message_id = (SELECT new FROM renumbered WHERE old = message_id)
    WHERE message_id IN (SELECT old FROM renumbered);
UPDATE facts SET message_id = coalesce(
    (SELECT CAST(new AS TEXT) FROM renumbered WHERE old = message_number(message_id)), message_id)
    WHERE message_id GLOB '[0-9]*p[0-9][0-9]';
UPDATE messages SET id = (SELECT new FROM renumbered WHERE old = id) WHERE id IN (SELECT old FROM renumbered);
DROP TABLE renumbered;
INSERT INTO message_search(message_search) VALUES ('delete-all');
DELETE FROM message_vectors;
DELETE FROM meta WHERE name IN ('search_made', 'vectors');
"""
_MISSING: Final = (
    "CREATE TABLE IF NOT EXISTS renamed_chats(lane TEXT PRIMARY KEY, first TEXT, later TEXT) WITHOUT ROWID"
)
_HIGHEST: Final = "SELECT max((SELECT coalesce(max(id), 0) FROM inbox), (SELECT coalesce(max(id), 0) FROM messages))"


def prepare(connection: apsw.Connection) -> None:
    """Make a file of the layout 31 ready to be read: a file of an early commit lacks a table, and messages get the
    numbers that they are to have."""
    former.prepare(connection)
    former.widen(connection)
    connection.execute(_MISSING)
    if one(connection, f"SELECT 1 FROM messages WHERE id >= {former.FOREIGN} LIMIT 1"):
        connection.execute(_FOREIGN).fetchall()


def bring(connection: apsw.Connection) -> None:
    """Bring what a file of the layout 31 holds over, beside the tables in which it lay."""
    prepare(connection)
    highest = one(connection, _HIGHEST)
    rests = [Rest(account=a, bucket=b, until=u, seconds=s) for a, b, u, s in many(connection, "SELECT * FROM rests")]
    lay_out(connection, from_number=0 if highest is None else int(highest[0]))
    assert isinstance(connection, Connection)
    written = WrittenRecords(connection)
    for page in former.dump(connection, 0.0):
        written.run(moving.put, page)
        connection.stored = ()  # they are in the index, or were not meant to be
    written.run(_put_rests, rests)
    connection.set_rollback_hook(None)
    # The parts of the file that the tables left are given back when it is rewritten.
    connection.execute(
        "INSERT INTO meta(name, value) VALUES ('scrub_owed', 3) ON CONFLICT (name) DO UPDATE SET value = 3"
    )


def _put_rests(space: Space, rests: list[Rest]) -> None:
    for rest in rests:
        space.put(REST, rest)
