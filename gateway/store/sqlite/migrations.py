"""Brings a file to the layout of this version, in one transaction.

Files of the version 32 have a table for each kind of record, and grow by themselves when a kind or an index is added
(`records.lay_out`). What earlier ones hold is read and put as records (`bringing`)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module
from pathlib import Path
from typing import Final

import apsw

from gateway.runtime.errors import StoreOutdated, StoreUnavailable
from gateway.store.kinds import KINDS
from gateway.store.sqlite.connection import APPLICATION_ID, check_ours, many, one
from gateway.store.sqlite.records import BESIDE, VIEWS, columns, has_all, lay_out

VERSION: Final = 32
OUTDATED: Final = "{path} has version {version}, and the next run updates it to {known}. Make a backup first."

_VIRTUAL: Final = (
    "CREATE VIRTUAL TABLE message_search USING fts5(",
    "CREATE VIRTUAL TABLE search_words USING fts5vocab(",
)
_OWN: Final = ("meta", "search_words", "rests", "rest", "member")  # tables that say nothing of conversations
_MOST_NAMED: Final = 5
_BRINGING, _FORMER = "gateway.store.sqlite.bringing", "gateway.store.sqlite.former"  # which few starts need


def _nothing(*_: int) -> None:
    """The default of a callback."""


def migrate(
    connection: apsw.Connection,
    path: Path,
    before: Callable[[int], None] = _nothing,
    tell: Callable[[int, int], None] = _nothing,
) -> None:
    """Bring a file to this version; `before` is called with the version of an older store first, and `tell` with how
    many of its facts are brought over, and of how many. Raises StoreUnavailable for a newer file or another
    program's."""
    version = _version(connection, path)
    if version == VERSION and has_all(connection):
        return
    if 0 < version < VERSION:
        before(version)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for each in BESIDE:
            connection.execute(each)
        if 0 < version < VERSION:
            import_module(_BRINGING).bring(connection, tell)
        else:
            lay_out(connection, from_number=0)
        if version < VERSION:
            for each in VIEWS:
                connection.execute(each)
        connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def check_readable(connection: apsw.Connection, path: Path) -> None:
    """Raises StoreUnavailable unless the file has exactly the layout this version knows."""
    if (version := _version(connection, path)) == 0:
        raise StoreOutdated(f"{path} is still empty. The first run of Legato sets it up.")
    if version < VERSION:
        raise StoreOutdated(OUTDATED.format(path=path, version=version, known=VERSION))
    if not has_all(connection):
        raise StoreOutdated(f"{path} was made by an early build of version 32. The next run of Legato completes it.")


def check_unaltered(connection: apsw.Connection, path: Path) -> None:
    """Raises StoreUnavailable for a file with a table, a trigger, a view or an index that is not one of its version's:
    a trigger, say, would do something with every message."""
    former = import_module(_FORMER) if _version(connection, path) < VERSION else None
    tables: dict[str, Collection[str] | None] = dict.fromkeys(("meta", "series", "message_vectors"))
    tables |= dict.fromkeys(former.TABLES) if former else {kind.name: columns(kind) for kind in KINDS}

    def is_ours(kind: str, name: str, table: str, sql: str) -> bool:
        if kind in ("trigger", "view"):
            return sql in VIEWS or (former is not None and kind == "trigger" and name in former.TRIGGERS)
        if sql.startswith("CREATE VIRTUAL"):
            return sql.startswith(_VIRTUAL)
        if table.startswith(("message_search_", "sqlite_")):
            return True
        if kind == "index":
            return table in tables and not sql.startswith("CREATE UNIQUE")
        known = tables.get(table, ())
        return known is None or {row[1] for row in many(connection, f'PRAGMA table_info("{table}")')} <= {*known}

    made = many(connection, "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema")
    foreign = [f"the {each[0]} {each[1]!r}" for each in made if not is_ours(*each)]
    if foreign:
        raise StoreUnavailable(
            f"Another program has changed {path}: it holds {', '.join(foreign[:_MOST_NAMED])}, which Legato never "
            "made. So Legato does not use the file."
        )


def tables(connection: apsw.Connection) -> list[str]:
    """The tables that a gateway's conversations fill, whatever the file's layout. Others are made from these."""
    query = (
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
        " AND name NOT GLOB 'message_search*' ORDER BY name"
    )
    return [name for (name,) in many(connection, query) if name not in _OWN]


def counts(connection: apsw.Connection) -> dict[str, int]:
    """How many rows each table has."""
    found = {table: one(connection, f'SELECT count(*) FROM "{table}"') for table in tables(connection)}
    return {table: int(row[0]) for table, row in found.items() if row is not None}


def check_known(connection: apsw.Connection, path: Path) -> None:
    """Raises StoreUnavailable for another program's file or a newer layout."""
    _version(connection, path)


def next_generation(connection: apsw.Connection) -> int:
    """Return how often this file was opened for writing, this time included.

    A fence or a claim for sending with an older number belongs to a process that is gone.
    """
    row = one(
        connection,
        "INSERT INTO meta(name, value) VALUES ('generation', 1)"
        " ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING value",
    )
    assert row is not None
    return int(row[0])


def _version(connection: apsw.Connection, path: Path) -> int:
    check_ours(connection, path)
    version = int(connection.pragma("user_version"))
    if version > VERSION:
        raise StoreUnavailable(
            f"{path} was written by a newer Legato (schema {version}, this one knows {VERSION}). Upgrade Legato."
        )
    return version
