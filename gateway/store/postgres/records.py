"""The records on PostgreSQL: a table for each kind, with a record's key, its document, and two columns for each index.

A person reads them with `psql`: SELECT doc #>> '{session,model}' FROM legato.session WHERE present LIKE 'telegram%'.
Documents are `json`, which keeps them as they were written; `jsonb` would refuse half a surrogate pair and \\u0000.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, Final, LiteralString, TypeVar

from psycopg import Connection

from gateway.store.draft import Draft
from gateway.store.kinds import KINDS
from gateway.store.space import Entry, Index, Key, Kind, Order, grouped

T = TypeVar("T")

_STEP: Final = 1_024  # numbers that the server gives at once, to one step: those of a later step are above them
_TOGETHER: Final = 1_000  # records that are read together
_EXTEND: Final = (
    "INSERT INTO series(name, place, number)"
    " SELECT %s, %s + place, number FROM unnest(%s::bigint[]) WITH ORDINALITY AS added(number, place)"
)
_META: Final = (
    "CREATE SCHEMA IF NOT EXISTS legato",
    f"CREATE SEQUENCE IF NOT EXISTS numbers INCREMENT BY {_STEP} START WITH {_STEP}",
    "CREATE TABLE IF NOT EXISTS meta(name text PRIMARY KEY, value text NOT NULL)",
    'CREATE TABLE IF NOT EXISTS series(name text COLLATE "C", place integer, number bigint NOT NULL,'
    " PRIMARY KEY (name, place))",
)


def statements() -> Iterator[str]:
    """What makes the tables and indexes that are not there. Nothing that was said gets into the server's statistics."""
    yield from _META
    for kind in KINDS:
        key, doc = "bigint" if kind.numbered else 'text COLLATE "C"', "bytea" if kind.raw else "json"
        yield f'CREATE TABLE IF NOT EXISTS "{kind.name}"(key {key} PRIMARY KEY, doc {doc} NOT NULL)'
        yield f'ALTER TABLE "{kind.name}" ALTER COLUMN doc SET STATISTICS 0'
        for each in kind.indexes:
            columns = f'"{each.name}" text COLLATE "C", ADD COLUMN IF NOT EXISTS "{each.name}_at" double precision'
            yield f'ALTER TABLE "{kind.name}" ADD COLUMN IF NOT EXISTS {columns}'
            where = f'("{each.name}", "{each.name}_at", key) WHERE "{each.name}" IS NOT NULL'
            yield f'CREATE INDEX IF NOT EXISTS "{kind.name}_{each.name}" ON "{kind.name}"{where}'


def sql(text: str) -> LiteralString:
    """A statement made of names that stand in this program."""
    return text


def _text(name: Key) -> Key:
    """A name as PostgreSQL takes it: without the zero that parts a note's folder from its name."""
    return name.replace("\0", "\x1f") if isinstance(name, str) else name


@cache
def _put(kind: Kind[Any]) -> LiteralString:
    columns = ["key", "doc", *(f'"{each.name}{of}"' for each in kind.indexes for of in ("", "_at"))]
    changes = ", ".join(f"{each} = excluded.{each}" for each in columns[1:])
    return sql(
        f'INSERT INTO "{kind.name}"({", ".join(columns)}) VALUES ({", ".join(["%s"] * len(columns))})'
        f" ON CONFLICT (key) DO UPDATE SET {changes}"
    )


class ServerRecords:
    """The records as a transaction sees them."""

    dense = False

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.begin()

    def begin(self) -> None:
        """Nothing is known of the next transaction."""
        self._read: dict[tuple[str, Key], Any] = {}
        self._numbers: Iterator[int] = iter(())

    def all(self, query: str, *values: Any) -> list[Any]:
        """The first column of what the server answers."""
        return [row[0] for row in self.rows(query, *values)]

    def rows(self, query: str, *values: Any) -> list[Any]:
        """What the server answers."""
        return self.connection.execute(sql(query), values).fetchall()

    def get(self, kind: Kind[T], key: Key) -> T | None:
        name = (kind.name, key)
        if name not in self._read:
            self._read[name] = next(iter(self.many(kind, [key])), None)
        found: T | None = self._read[name]
        return found

    def many(self, kind: Kind[T], keys: Sequence[Key]) -> list[T]:
        sought = [_text(key) for key in keys if isinstance(key, str) or key < 1 << 63]
        made, of = "bigint" if kind.numbered else "text", "" if kind.raw else "::text"
        query = (
            f"SELECT t.doc{of} FROM unnest(%s::{made}[]) WITH ORDINALITY AS sought(key, place)"
            f' JOIN "{kind.name}" t USING (key) ORDER BY place'
        )
        return [kind.record(each) for each in self.all(query, sought)] if sought else []

    def every(self, kind: Kind[T]) -> Iterator[T]:
        """The records of a kind by their keys."""
        keys = self.all(f'SELECT key FROM "{kind.name}" ORDER BY key')
        for some in grouped(kind, keys, _TOGETHER):
            yield from self.many(kind, some)

    def fill(self, kind: Kind[Any], indexes: Sequence[Index[Any]]) -> None:
        """Enter the records of a kind into indexes that the program did not have which wrote them."""
        changes = ", ".join(f'"{each.name}" = %s, "{each.name}_at" = %s' for each in indexes)
        for record in self.every(kind) if indexes else ():
            values = _entries([each.entry(record) for each in indexes])
            query = sql(f'UPDATE "{kind.name}" SET {changes} WHERE key = %s')
            self.connection.execute(query, (*values, _text(kind.key(record))))

    def look(
        self, index: Index[T], under: str, most: int, since: Order | None, before: Order | None, last: bool
    ) -> list[T]:
        name, down, of = index.name, " DESC" if last else "", "" if index.kind.raw else "::text"
        more = "".join(f' AND "{name}_at" {sign} %s' for sign, at in ((">=", since), ("<", before)) if at is not None)
        query = (
            f'SELECT doc{of} FROM "{index.kind.name}" WHERE "{name}" = %s{more}'
            f' ORDER BY "{name}_at"{down}, key{down} LIMIT %s'
        )
        between = [float(at) for at in (since, before) if at is not None]
        return [index.kind.record(each) for each in self.all(query, _text(under), *between, most)]

    def count(self, index: Index[Any], under: str) -> int:
        return int(self.all(f'SELECT count(*) FROM "{index.kind.name}" WHERE "{index.name}" = %s', _text(under))[0])

    def names(self, index: Index[Any]) -> list[str]:
        name = f'"{index.name}"'
        return sorted(self.all(f'SELECT DISTINCT {name} FROM "{index.kind.name}" WHERE {name} IS NOT NULL'))

    def members(self, series: str, since: int = 0) -> list[int]:
        return self.all("SELECT number FROM series WHERE name = %s AND place >= %s ORDER BY place", series, since)

    def number(self) -> int:
        number = next(self._numbers, 0)
        if not number:
            number = int(self.all("SELECT nextval('numbers')")[0])
            self._numbers = iter(range(number + 1, number + _STEP))
        return number

    def write(self, draft: Draft) -> None:
        """Write what a step has put."""
        execute = self.connection.execute
        for kind, records in draft.records.items():
            entries = draft.entries.get(kind)
            for key, record in records.items():
                if record is None:
                    execute(sql(f'DELETE FROM "{kind.name}" WHERE key = %s'), (_text(key),))
                else:
                    execute(_put(kind), _values(kind, key, record, () if entries is None else entries[key]))
        for name, (place, numbers) in draft.series.items():
            if name in draft.cut:
                execute("DELETE FROM series WHERE name = %s AND place >= %s", (name, place))
            execute(_EXTEND, (name, place - 1, numbers))


def _values(kind: Kind[T], key: Key, record: T, entries: Sequence[Entry]) -> list[Any]:
    document = kind.document(record)
    return [_text(key), document if kind.raw else document.decode(), *_entries(entries)]


def _entries(entries: Sequence[Entry]) -> Iterator[Any]:
    for entry in entries:
        yield from (None, None) if entry is None else (_text(entry[0]), float(entry[1]))
