"""Memory: the facts of a scope, each a row."""

from __future__ import annotations

from typing import Final

import apsw

from gateway.domain.chat import SessionKey
from gateway.domain.memory import Memory, MemoryChange, in_order
from gateway.store.shared.fields import FACT
from gateway.store.sqlite.connection import change, many, marks, one

_COLUMNS: Final = ", ".join(FACT.names)


def memory(connection: apsw.Connection, scope: SessionKey) -> Memory:
    """A scope's facts; none if nothing was ever remembered."""
    version, last_number = _counters(connection, scope)
    rows = many(connection, f"SELECT {_COLUMNS} FROM facts WHERE scope = ?", (str(scope),))
    return Memory(facts=in_order(map(FACT.of_row, rows)), version=version, last_number=last_number)


def change_memory(connection: apsw.Connection, wanted: MemoryChange) -> bool:
    """Change a scope's facts; False, and nothing is written, if somebody else did so since they were read."""
    if _counters(connection, wanted.scope)[0] != wanted.version:
        return False
    scope = str(wanted.scope)
    for gone in wanted.gone:
        change(connection, "DELETE FROM facts WHERE scope = ? AND id = ?", (scope, gone))
    for fact in wanted.kept:
        row = tuple(FACT.row(fact))
        change(connection, f"INSERT OR REPLACE INTO facts({_COLUMNS}) VALUES ({marks(_COLUMNS)})", row)
    change(
        connection,
        "INSERT OR REPLACE INTO memory_versions(scope, version, last_number) VALUES (?,?,?)",
        (scope, wanted.version + 1, wanted.last_number),
    )
    return True


def _counters(connection: apsw.Connection, scope: SessionKey) -> tuple[int, int]:
    """A memory's version, and the highest number of its facts."""
    row = one(connection, "SELECT version, last_number FROM memory_versions WHERE scope = ?", (str(scope),))
    return (0, 0) if row is None else (int(row[0]), int(row[1]))
