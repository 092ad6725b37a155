"""What is left in a file of what was forgotten, and how it goes.

A step that forgets notes that remains are to be scrubbed. Scrubbing rewrites the search index without the
terms of what is gone (in steps, so that other writes come between) and folds the log into the file. The connection
overwrites whatever it deletes. A file of an earlier Legato was not written so: it is rewritten as a whole, once.
"""

from __future__ import annotations

from typing import Final

import apsw

from gateway.store.sqlite.connection import change, one

_SCRUB: Final = "scrub_owed"  # in `meta`, a sum of these:
_REMAINS: Final = 1  # something was forgotten, and its remains are to be scrubbed
_OLD_FILE: Final = 2  # an earlier Legato did not overwrite what it deleted: then the file is rewritten, too


def owe_scrub(connection: apsw.Connection) -> None:
    """Note that something was forgotten, and that its remains are to be scrubbed."""
    change(
        connection,
        "INSERT INTO meta(name, value) VALUES (?1, ?2) ON CONFLICT (name) DO UPDATE SET value = value | ?2",
        (_SCRUB, _REMAINS),
    )


def owes_scrub(connection: apsw.Connection) -> bool:
    """Whether remains of something forgotten may lie in the file."""
    return bool(_owed(connection) & _REMAINS)


def is_old(connection: apsw.Connection) -> bool:
    """Whether remains may lie anywhere in the file."""
    return bool(_owed(connection) & _OLD_FILE)


def _owed(connection: apsw.Connection) -> int:
    row = one(connection, "SELECT value FROM meta WHERE name = ?", (_SCRUB,))
    return 0 if row is None else int(row[0])


def scrubbed(connection: apsw.Connection) -> None:
    """Note that nothing is left to scrub."""
    change(connection, "DELETE FROM meta WHERE name = ?", (_SCRUB,))


def rewrite_file(connection: apsw.Connection) -> None:
    """Write the whole file anew, without remains of deleted rows. To be run outside of a transaction."""
    connection.execute("VACUUM").fetchall()


def fold_log(connection: apsw.Connection) -> bool:
    """Fold the log into the file and empty it; False: a reader, such as a backup, holds the log back. To be run outside
    of a transaction."""
    row = one(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
    return row is not None and not row[0]
