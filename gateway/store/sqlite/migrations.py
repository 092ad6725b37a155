"""Brings a file to the schema of this version: forward only, all missing steps in one transaction.

A step is one more file in `schema/`; files that are there never change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from importlib import import_module, resources
from pathlib import Path
from typing import Final

import apsw

from gateway.runtime.errors import StoreOutdated, StoreUnavailable
from gateway.store.sqlite.connection import APPLICATION_ID, check_ours, many, one
from gateway.store.sqlite.records import lay_out, lay_views

OUTDATED: Final = "{path} has version {version}: a run will bring this store to {known}; back up first."

_FORMER: Final = ("chat_names", "sqlite_stat1", "sqlite_stat4")  # of an early commit; and what SQLite itself makes
_MOST_NAMED: Final = 5
# In the order of their numbers; a file's version says how many steps were applied.
COLUMNS: Final = tuple(
    sorted(
        each.name for each in resources.files(__package__).joinpath("schema").iterdir() if each.name.endswith(".sql")
    )
)
_KINDS: Final = "0032_kinds"  # from there on a file has a table for each kind of record
_BRINGING: Final = "gateway.store.sqlite.bringing"  # which few starts need
MIGRATIONS: Final = (*COLUMNS, _KINDS)
_HOLDS: Final = "SELECT 1 FROM inbox UNION ALL SELECT 1 FROM sessions UNION ALL SELECT 1 FROM notes LIMIT 1"
_TABLES: Final = (
    *("inbox", "turns", "signals", "approvals", "sessions", "prompts", "tips", "owed_hooks", "messages", "transcript"),
    *("compactions", "outbox", "closed_chats", "renamed_chats", "ledger", "ledger_days", "spending", "reservations"),
    *("rests", "pins", "files", "contents", "notes", "forgotten", "facts", "memory_versions", "reminders"),
    "chat_names",  # of an early commit
)


def migrate(
    connection: apsw.Connection,
    path: Path,
    before: Callable[[int], None] = lambda _: None,
    *,
    to: int = len(MIGRATIONS),
) -> None:
    """Apply the steps that are missing, up to a version; `before` is called with the version of an older store first.
    Raises StoreUnavailable for a newer file or another program's."""
    version = _version(connection, path)
    missing = MIGRATIONS[version:to]
    if not missing:
        return
    if version:
        before(version)
    connection.execute("BEGIN IMMEDIATE")
    try:
        _apply(connection, missing)
        connection.execute(f"PRAGMA user_version = {to}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    if not version:
        connection.execute("VACUUM").fetchall()  # without the parts that tables of earlier layouts had


def empty(connection: apsw.Connection) -> None:
    """Make a new file of one of this version. It holds nothing."""
    if connection.pragma("user_version") != len(MIGRATIONS):
        return
    made = "SELECT type, name FROM sqlite_schema WHERE sql LIKE ? AND type IN ('table', 'view')"
    with connection:
        for form in ("CREATE VIRTUAL TABLE%", "CREATE%"):
            for kind, name in many(connection, f"{made} AND name NOT GLOB 'sqlite_*' ORDER BY rowid DESC", (form,)):
                connection.execute(f'DROP {kind} "{name}"')
        connection.execute("PRAGMA user_version = 0")


def check_readable(connection: apsw.Connection, path: Path) -> None:
    """Raises StoreUnavailable unless the file has exactly the schema this version knows."""
    if (version := _version(connection, path)) == 0:
        raise StoreOutdated(f"{path} is empty yet: the first run fills it.")
    if version < len(MIGRATIONS):
        raise StoreOutdated(OUTDATED.format(path=path, version=version, known=len(MIGRATIONS)))


def check_unaltered(connection: apsw.Connection, path: Path) -> None:
    """Raises StoreUnavailable for a file with a table, a trigger, a view or an index that is not one of its version's:
    a trigger, say, would do something with every message."""
    made = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
    with closing(apsw.Connection(":memory:")) as own:
        _apply(own, MIGRATIONS[: _version(connection, path)])
        known = {*many(own, made)}
    foreign = [each for each in many(connection, made) if each not in known and each[1] not in _FORMER]
    if foreign:
        named = ", ".join(f"the {kind} {name!r}" for kind, name, _, _ in foreign[:_MOST_NAMED])
        raise StoreUnavailable(
            f"{path} holds what no store of Legato holds: {named}. Another program changed it; nothing of it was used."
        )


def _apply(connection: apsw.Connection, names: Sequence[str]) -> None:
    for name in names:
        if name == _KINDS:
            _lay_out_kinds(connection)
            continue
        connection.execute(resources.files(__package__).joinpath("schema", name).read_text("utf-8")).fetchall()


def _lay_out_kinds(connection: apsw.Connection) -> None:
    """Make a table for each kind of record, in place of the tables of before, and bring over what they hold."""
    if one(connection, _HOLDS):
        import_module(_BRINGING).bring(connection)
    else:
        lay_out(connection, from_number=0)
    for table in _TABLES:
        connection.execute(f"DROP TABLE IF EXISTS {table}")
    lay_views(connection)


def check_known(connection: apsw.Connection, path: Path) -> None:
    """Raises StoreUnavailable for another program's file or a newer schema."""
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
    if version > len(MIGRATIONS):
        raise StoreUnavailable(
            f"{path} was written by a newer Legato (schema {version}, this one knows {len(MIGRATIONS)}):"
            " upgrade Legato."
        )
    return version
