"""What a file holds, in counts and samples, to compare a store with another version of itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import apsw
from msgspec import Struct

from gateway.store.sqlite.connection import many, one

OWN: Final = ("meta", "rests", "rest", "member")  # tables that say nothing of conversations
MOVED: Final = {"guest_book": ("notes", 2)}  # tables that are gone: where each row is now, and as how many
_SAMPLES: Final = 200  # rows of a table, at least, if it has so many


class Sample(Struct, frozen=True, kw_only=True):
    """Some rows of a table, spread over all of it: the values of each row by column."""

    keys: tuple[str, ...]
    rows: Sequence[Mapping[str, Any]]


class Holdings(Struct, frozen=True, kw_only=True):
    """How many rows each table has, and some of them."""

    counts: Mapping[str, int]
    samples: Mapping[str, Sample]


_NO_SAMPLE: Final = Sample(keys=(), rows=())  # of a table that was not there


def tables(connection: apsw.Connection) -> Iterator[str]:
    """The tables that a gateway's conversations fill, whatever the file's schema. Others are made from these."""
    rows = many(
        connection,
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
        " AND name NOT GLOB 'message_search*' AND name <> 'search_words'",
    )
    return (name for (name,) in rows if name not in OWN)


def counts(connection: apsw.Connection) -> dict[str, int]:
    """How many rows each table has."""
    return {table: _count(connection, table) for table in sorted(tables(connection))}


def holdings(connection: apsw.Connection) -> Holdings:
    """What the file holds."""
    counted = counts(connection)
    return Holdings(
        counts=counted, samples={table: _sample(connection, table, count) for table, count in counted.items()}
    )


def differences(before: Holdings, connection: apsw.Connection) -> list[str]:
    """A sentence for each table that does not hold any more what it held. Columns and tables may have been added."""
    found = []
    now, wanted = counts(connection), dict(before.counts)
    for table in MOVED.keys() & wanted.keys() - now.keys():
        home, rows = MOVED[table]
        wanted[home] = wanted.get(home, 0) + wanted.pop(table) * rows
    for table, count in wanted.items():
        if now.get(table) != count:
            found.append(f"{table} should have {count:,} rows, and has {now.get(table, 0):,}")
            continue
        sample = before.samples.get(table, _NO_SAMPLE)
        columns = set(_columns(connection, table))
        where = " AND ".join(f"{key} IS ?" for key in sample.keys)
        for row in sample.rows:
            known = [name for name in row if name in columns]
            bindings = tuple(row[key] for key in sample.keys)
            if one(connection, f"SELECT {', '.join(known)} FROM {table} WHERE {where}", bindings) != tuple(
                row[name] for name in known
            ):
                found.append(f"a row of {table} is not as it was")
                break
    return found


def _count(connection: apsw.Connection, table: str) -> int:
    row = one(connection, f"SELECT count(*) FROM {table}")
    assert row is not None
    return int(row[0])


def _columns(connection: apsw.Connection, table: str) -> dict[str, int]:
    """The names of the columns, with their place in the primary key; 0: they are not in it."""
    return dict(many(connection, f"SELECT name, pk FROM pragma_table_info('{table}')"))


def _sample(connection: apsw.Connection, table: str, count: int) -> Sample:
    columns = _columns(connection, table)
    keys = tuple(sorted((name for name, place in columns.items() if place), key=columns.__getitem__)) or ("rowid",)
    names = list(dict.fromkeys((*keys, *columns)))
    every = max(1, count // _SAMPLES)
    rows = many(
        connection,
        f"SELECT {', '.join(names)} FROM (SELECT {', '.join(names)}, row_number() OVER (ORDER BY {', '.join(keys)}) - 1"
        f" AS place FROM {table}) WHERE place % {every} = 0",
    )
    return Sample(keys=keys, rows=[dict(zip(names, row, strict=True)) for row in rows])
