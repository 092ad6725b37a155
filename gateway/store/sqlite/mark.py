"""The mark on a file that `legato migrate` is filling, or was when it was killed; and what else says that a file is not
whole."""

from __future__ import annotations

from pathlib import Path

import apsw

from gateway.runtime.errors import StoreUnavailable
from gateway.store.sqlite.connection import change, one
from gateway.store.sqlite.swapping import prepared


def origin_of(connection: apsw.Connection) -> str | None:
    """Return the source of a half-filled file's facts; None for a whole file."""
    if one(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'meta'") is None:
        return None
    row = one(connection, "SELECT value FROM meta WHERE name = 'moving_from'")
    return None if row is None else str(row[0])


def check_whole(connection: apsw.Connection, path: Path) -> None:
    """Raises StoreUnavailable for a half-filled file, or one that is about to be replaced."""
    if prepared(path).exists():
        raise StoreUnavailable(f"A restore of {path} was interrupted. Start Legato, which finishes the restore.")
    origin = origin_of(connection)
    if origin is not None:
        raise StoreUnavailable(
            f"{path} holds half of a migration from {origin}. Run `legato migrate` again, or set another store.url."
        )


def mark(connection: apsw.Connection, origin: str) -> None:
    """From now on it is half-filled from `origin`."""
    change(connection, "INSERT OR REPLACE INTO meta(name, value) VALUES ('moving_from', ?)", (origin,))


def unmark(connection: apsw.Connection) -> None:
    """Take the mark away: the file is whole."""
    change(connection, "DELETE FROM meta WHERE name = 'moving_from'")
