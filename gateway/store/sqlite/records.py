"""The records on SQLite: a table for each kind, with a record's key, its document, and two columns for each index.

The names under which a record stands are plain columns, and the document is JSON, so that a person reads the file with
`sqlite3`: SELECT doc ->> '$.session.model' FROM session WHERE present = 'telegram/chat=1'.

The file has one owner. So the writer remembers the records that it read or wrote, those that it looked for in vain, and
what stands in a few short indexes: most steps ask the file for very little.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import count as counting
from itertools import repeat
from typing import Any, Final, TypeVar

import apsw

from gateway.domain.chat import MOST_PLACE
from gateway.store.draft import Draft
from gateway.store.kinds import (
    ALARMS,
    CALL,
    CONTENT,
    EVENT,
    FACT,
    HELD,
    KINDS,
    MESSAGE,
    NOTE,
    OUT,
    PRESENT,
    ROWS,
    SCOPE,
    SESSIONS,
    UNSENT_ROWS,
    names,
)
from gateway.store.space import Entry, Index, Key, Kind, Order, grouped
from gateway.store.sqlite import forgetting, search
from gateway.store.sqlite.connection import Connection, Row, many, one
from gateway.store.steps.outbox import ROUND

T = TypeVar("T")

_REMEMBERED: Final = 8_192  # records
_FORGOTTEN: Final = 2_048  # the oldest of them, when there are too many
_PASSING: Final = (MESSAGE.name, CALL.name, EVENT.name, CONTENT.name)  # kinds that no later step asks for
_BESIDE: Final = (NOTE.name, FACT.name, SCOPE.name)  # kinds that are written beside the owner of the file, too
_NOT_KEPT: Final = frozenset((*_PASSING, *_BESIDE))
_SHORT_INDEXES: Final[tuple[Index[Any], ...]] = (OUT, PRESENT, ALARMS)  # that are remembered
_SHORT: Final = {index.kind.name: (index.kind.indexes.index(index), index) for index in _SHORT_INDEXES}
_MOST_SHORT: Final = 256  # records that stand under one name of such an index
_SCANNED: Final = (HELD,)  # asked for when a process has died, in a table that is short
_ROWIDS: Final = (SESSIONS, ROWS)  # all records of a kind, each with a place of its own: the order of the table
_SHARED: Final = {UNSENT_ROWS: OUT}  # whoever stands in the second stands in the first: one index of SQLite serves both
_WIDER: Final = {inner: outer for outer, inner in _SHARED.items()}
_TOGETHER: Final = 1_000  # records that are read together
_AHEAD: Final = 1_000  # numbers that are noted in the file as given before they are

_UNKNOWN: Final[Any] = object()  # it has to be looked for
_NONE: Final = (None, None)
_SERIES: Final = (
    "CREATE TABLE IF NOT EXISTS series(name TEXT NOT NULL, place INTEGER NOT NULL, number INTEGER NOT NULL,"
    " PRIMARY KEY (name, place)) WITHOUT ROWID"
)


# What the file has beside the tables of kinds: the full-text index, whose terms `gateway.words` makes, so that the
# tokenizer has only to split at spaces (contentless: the text is in `message` already; without positions: what needs
# adjacency is checked against the text itself), its words, and what messages mean: the signs of a vector, its numbers.
BESIDE: Final = (
    "CREATE TABLE IF NOT EXISTS meta(name TEXT PRIMARY KEY, value ANY) WITHOUT ROWID",
    "CREATE VIRTUAL TABLE IF NOT EXISTS message_search USING fts5("
    "owner, terms, content='', contentless_delete=1, detail=column, tokenize='ascii')",
    "CREATE VIRTUAL TABLE IF NOT EXISTS search_words USING fts5vocab('message_search', 'row')",
    "CREATE TABLE IF NOT EXISTS message_vectors(id INTEGER PRIMARY KEY, signs BLOB NOT NULL, numbers BLOB NOT NULL)"
    " STRICT",
)


def has_all(connection: apsw.Connection) -> bool:
    """Whether the file has a table for each kind of this version, and all their indexes are filled."""
    return _filled(connection) == names()


def _filled(connection: apsw.Connection) -> list[str]:
    row = one(connection, "SELECT value FROM meta WHERE name = 'kinds'")
    return [] if row is None else row[0].split()


def lay_out(connection: apsw.Connection, *, from_number: int) -> None:
    """Make the tables and indexes that the file lacks, and fill the indexes. In a new file numbers count on from
    there."""
    filled = _filled(connection)
    for kind in KINDS:
        there = {row[1] for row in many(connection, f'PRAGMA table_info("{kind.name}")')}
        if not there:
            connection.execute(_table(kind))
        for index in kind.indexes:
            if there and index.name not in there:
                connection.execute(f'ALTER TABLE "{kind.name}" ADD COLUMN "{index.name}" TEXT')
                connection.execute(f'ALTER TABLE "{kind.name}" ADD COLUMN "{index.name}_at" NUMERIC')
            if index not in (*_SCANNED, *_ROWIDS, *_SHARED):
                by = f'"{index.name}", "{index.name}_at", key'
                made = f'CREATE INDEX IF NOT EXISTS {_name(index)} ON "{kind.name}"({by}) WHERE {_there(index)}'
                connection.execute(made)
        if there and filled:
            _fill(connection, kind, [index for index in kind.indexes if f"{kind.name}.{index.name}" not in filled])
    connection.execute(_SERIES)
    connection.execute("INSERT INTO meta(name, value) VALUES ('numbers', ?) ON CONFLICT DO NOTHING", (from_number,))
    connection.execute("INSERT OR REPLACE INTO meta(name, value) VALUES ('kinds', ?)", (" ".join(names()),))


def _fill(connection: apsw.Connection, kind: Kind[Any], indexes: Sequence[Index[Any]]) -> None:
    """Enter the records of a kind into indexes that the program did not have which wrote them."""
    if not indexes:
        return
    columns = ", ".join(f'"{index.name}" = ?, "{index.name}_at" = ?' for index in indexes)
    for record in FileRecords(connection).every(kind):
        values: list[Any] = [value for index in indexes for value in (index.entry(record) or _NONE)]
        connection.execute(f'UPDATE "{kind.name}" SET {columns} WHERE key = ?', (*values, kind.key(record)))


def _table(kind: Kind[Any]) -> str:
    is_ordered = any(index in _ROWIDS for index in kind.indexes)
    key = "TEXT NOT NULL UNIQUE" if is_ordered else "INTEGER PRIMARY KEY" if kind.numbered else "TEXT PRIMARY KEY"
    columns = [f"key {key}", "doc TEXT NOT NULL"]
    for index in kind.indexes:
        at = "INTEGER PRIMARY KEY" if index in _ROWIDS else "NUMERIC"
        columns.append(f'"{index.name}" TEXT, "{index.name}_at" {at}')
    return f'CREATE TABLE "{kind.name}"({", ".join(columns)}){"" if kind.numbered or is_ordered else " WITHOUT ROWID"}'


def _name(index: Index[Any]) -> str:
    return f'"{index.kind.name}_{index.name}"'


def _there(index: Index[Any]) -> str:
    """What is so of all that SQLite's index holds."""
    return f'"{_WIDER.get(index, index).name}" IS NOT NULL'


def _source(index: Index[Any]) -> str:
    """Where the records of an index are looked for."""
    by = f" INDEXED BY {_name(_SHARED[index])}" if index in _SHARED else ""
    return f'"{index.kind.name}"{by} WHERE {_there(index)}'


# What a search reads the records by.
VIEWS: Final = (
    "CREATE VIEW messages AS SELECT key AS id, messages AS key, doc ->> '$.session_id' AS session_id,"
    " doc ->> '$.message.role' AS role, doc -> '$.message' AS body, nullif(doc -> '$.note', 'null') AS note,"
    " doc ->> '$.tokens' AS tokens, doc ->> '$.at' AS at FROM message",
    "CREATE VIEW sessions AS SELECT key AS id, doc ->> '$.session.parent_id' AS parent_id FROM session",
    "CREATE TRIGGER message_vectors_go AFTER DELETE ON message BEGIN"
    " DELETE FROM message_vectors WHERE id = old.key; END",
)
_DANGLING: Final = {
    "places of transcripts without a message": "series s LEFT JOIN message m ON m.key = s.number WHERE m.key IS NULL",
    "sessions without a prompt": "session s LEFT JOIN prompt p ON p.key = s.key WHERE p.key IS NULL",
}


def dangling(connection: apsw.Connection) -> dict[str, int]:
    """Counts of records that refer to others which are not there, by what they are; all of the file is read."""
    counts = {what: one(connection, f"SELECT count(*) FROM {rows}") for what, rows in _DANGLING.items()}
    return {what: row[0] if row else 0 for what, row in counts.items()}


def columns(kind: Kind[Any]) -> tuple[str, ...]:
    """The columns of a kind's table."""
    return ("key", "doc", *(f"{index.name}{of}" for index in kind.indexes for of in ("", "_at")))


@cache
def _insert(kind: Kind[Any]) -> str:
    names = [f'"{name}"' for name in columns(kind)]
    return f'INSERT INTO "{kind.name}"({", ".join(names)}) VALUES ({", ".join("?" * len(names))})'


@cache
def _update(kind: Kind[Any], changed: tuple[int, ...]) -> str:
    names = [kind.indexes[place].name for place in changed]
    columns = "".join(f', "{name}" = ?, "{name}_at" = ?' for name in names)
    return f'UPDATE "{kind.name}" SET doc = ?{columns} WHERE key = ?'


@cache
def _look(index: Index[Any], since: bool, before: bool, last: bool) -> str:
    at, down = f'"{index.name}_at"', " DESC" if last else ""
    more = (f" AND {at} >= ?" if since else "") + (f" AND {at} < ?" if before else "")
    return f'SELECT key, doc FROM {_source(index)} AND "{index.name}" = ?{more} ORDER BY {at}{down}, key{down} LIMIT ?'


@cache
def _listed(index: Index[Any]) -> str:
    return f'SELECT key, "{index.name}_at" FROM {_source(index)} AND "{index.name}" = ? LIMIT ?'


class FileRecords:
    """The records as they are in the file at this moment, for steps that only look."""

    dense = True

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def get(self, kind: Kind[T], key: Key) -> T | None:
        rows: list[Row] = self.connection.execute(f'SELECT doc FROM "{kind.name}" WHERE key = ?', (key,)).fetchall()
        return kind.record(rows[0][0]) if rows else None

    def many(self, kind: Kind[T], keys: Sequence[Key]) -> list[T]:
        query = f'SELECT t.doc FROM json_each(?) k JOIN "{kind.name}" t ON t.key = k.value ORDER BY k.rowid'
        return [kind.record(row[0]) for row in many(self.connection, query, (json.dumps(list(keys)),))]

    def every(self, kind: Kind[T]) -> Iterator[T]:
        """The records of a kind by their keys."""
        keys = [row[0] for row in many(self.connection, f'SELECT key FROM "{kind.name}" ORDER BY key')]
        for some in grouped(kind, keys, _TOGETHER):
            yield from self.many(kind, some)

    def last_number(self) -> int:
        """A number that is not below any that was given."""
        row = one(self.connection, "SELECT value FROM meta WHERE name = 'numbers'")
        return 0 if row is None else int(row[0])

    def look(
        self, index: Index[T], under: str, most: int, since: Order | None, before: Order | None, last: bool
    ) -> list[T]:
        values: list[Any] = [under]
        if since is not None:
            values.append(since)
        if before is not None:
            values.append(before)
        values.append(most)
        query = _look(index, since is not None, before is not None, last)
        rows: list[Row] = self.connection.execute(query, values).fetchall()
        return [self._record(index.kind, *row) for row in rows] if rows else []

    def _record(self, kind: Kind[T], key: Key, document: str) -> T:
        return kind.record(document)

    def count(self, index: Index[Any], under: str) -> int:
        if index in _ROWIDS:
            row = one(self.connection, f'SELECT count(*) FROM "{index.kind.name}"')
        else:
            row = one(self.connection, f'SELECT count(*) FROM {_source(index)} AND "{index.name}" = ?', (under,))
        return 0 if row is None else int(row[0])

    def names(self, index: Index[Any]) -> list[str]:
        name = f'"{index.name}"'
        query = f"SELECT DISTINCT {name} FROM {_source(index)} AND {name} IS NOT NULL ORDER BY 1"
        return [row[0] for row in many(self.connection, query)]

    def members(self, series: str, since: int = 0) -> list[int]:
        query = "SELECT number FROM series WHERE name = ? AND place >= ? ORDER BY place"
        return [row[0] for row in many(self.connection, query, (series, since))]

    def number(self) -> int:
        raise AssertionError("A step that only looks needs no number.")


class WrittenRecords(FileRecords):
    """The records of the one connection that writes: each step is written in a transaction of the writer's."""

    connection: Connection

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._known: dict[tuple[str, Key], Any] = {}  # None: there is no such record
        self._entries: dict[tuple[str, Key], Sequence[Entry]] = {}  # of records that were written
        self._places: dict[tuple[Index[Any], str], dict[Key, Order]] = {}  # all that stands under a name
        self._last = self._noted = self._begun = self._sure = self.last_number()
        # A file that was filled from a server goes on as far apart as the numbers are there.
        self.dense = self._last * ROUND < MOST_PLACE
        self._apart = 1 if self.dense else ROUND
        connection.set_rollback_hook(self._forget_all)

    def run(self, step: Callable[..., T], *args: Any) -> tuple[T, list[tuple[str, ...]]]:
        """Run a step, and write what it has put; its result, and the news that it tells."""
        self._begun = self._last
        draft = Draft(self, self._known)
        result = step(draft, *args)
        try:
            self._write_all(draft)
        except BaseException:
            self._forget_all()
            raise
        if len(self._known) > _REMEMBERED:
            for each in list(self._known)[:_FORGOTTEN]:
                self._leave(each)
            self._sure = self._last
        if len(self._places) > _REMEMBERED:
            for index in list(self._places)[:_FORGOTTEN]:
                del self._places[index]
        return result, draft.news

    def _write_all(self, draft: Draft) -> None:
        for kind, records in draft.records.items():
            entries = draft.entries.get(kind)
            for key, record in records.items():
                if record is None:
                    self._drop(kind, key)
                else:
                    self._write(kind, key, record, () if entries is None else entries[key])
        for name, (place, numbers) in draft.series.items():
            if name in draft.cut:
                self.connection.execute("DELETE FROM series WHERE name = ? AND place >= ?", (name, place))
            rows = zip(repeat(name), counting(place), numbers, strict=False)
            self.connection.executemany("INSERT INTO series(name, place, number) VALUES (?,?,?)", rows)
        if self._last > self._noted:
            self._noted = self._last + _AHEAD * self._apart
            self.connection.execute("UPDATE meta SET value = ? WHERE name = 'numbers'", (self._noted,))
        if ("forgotten",) in draft.news:
            forgetting.owe_scrub(self.connection)

    def _forget_all(self) -> None:
        """A transaction was undone."""
        self._known.clear()
        self._entries.clear()
        self._places.clear()
        self._sure = self._last
        self._noted = 0

    def _leave(self, name: tuple[str, Key]) -> None:
        self._known.pop(name, None)
        self._entries.pop(name, None)

    def get(self, kind: Kind[T], key: Key) -> T | None:
        name = (kind.name, key)
        if name in self._known:
            found: T | None = self._known[name]
            return found
        if kind.numbered and int(key) > self._sure and kind.name not in _NOT_KEPT:
            return None  # it would be remembered
        found = super().get(kind, key)
        if kind.name not in _BESIDE:
            self._known[name] = found
        return found

    def many(self, kind: Kind[T], keys: Sequence[Key]) -> list[T]:
        if len(keys) != 1:
            return super().many(kind, keys)
        found = self.get(kind, keys[0])
        return [] if found is None else [found]

    def look(
        self, index: Index[T], under: str, most: int, since: Order | None, before: Order | None, last: bool
    ) -> list[T]:
        places = self._places.get((index, under))
        if places is None and index in _SHORT_INDEXES:
            places = self._learn(index, under)
        if places is None:
            return super().look(index, under, most, since, before, last)
        if not places:
            return []
        chosen = list[tuple[Order, Key]]()
        for key, place in places.items():
            if (since is None or place >= since) and (before is None or place < before):
                chosen.append((place, key))
        chosen.sort(reverse=last)
        there = list[T]()
        for _, key in chosen[:most]:
            record = self.get(index.kind, key)
            if record is not None:
                there.append(record)
        return there

    def _learn(self, index: Index[Any], under: str) -> dict[Key, Order] | None:
        """All that stands under a name of a short index, which is remembered from now on; None: that is too much."""
        rows: list[Row] = self.connection.execute(_listed(index), (under, _MOST_SHORT + 1)).fetchall()
        if len(rows) > _MOST_SHORT:
            return None
        places = self._places[index, under] = dict(rows)
        return places

    def count(self, index: Index[Any], under: str) -> int:
        places = self._places.get((index, under))
        return super().count(index, under) if places is None else len(places)

    def _move(self, kind: Kind[Any], key: Key, before: Sequence[Entry] | None, now: Sequence[Entry] | None) -> None:
        """A record stands elsewhere in the short index of its kind than it did."""
        place, index = _SHORT[kind.name]
        old, new = before and before[place], now and now[place]
        if old == new:
            return
        if old and (there := self._places.get((index, old[0]))) is not None:
            there.pop(key, None)
        if new and (there := self._places.get((index, new[0]))) is not None:
            there[key] = new[1]
            if len(there) > _MOST_SHORT:
                del self._places[index, new[0]]

    def _record(self, kind: Kind[T], key: Key, document: str) -> T:
        known: T | None = self._known.get((kind.name, key))
        if known is None:
            known = kind.record(document)
            if kind.name not in _BESIDE:
                self._known[kind.name, key] = known
        return known

    def _write(self, kind: Kind[T], key: Key, record: T, entries: Sequence[Entry]) -> None:
        name = (kind.name, key)
        is_new = kind.numbered and name not in self._known and int(key) > self._begun  # its number was just given
        old = None if is_new else self._known.get(name, _UNKNOWN)
        if old is _UNKNOWN:
            old = self.get(kind, key)
        try:
            written = kind.plain(record)
        except UnicodeEncodeError:
            written = kind.document(record)
        document = written if kind.raw else written.decode()
        before: Sequence[Entry] | None = None
        if old is None:
            values: list[Any] = [key, document]
            for entry in entries:
                values += entry or _NONE
            self.connection.execute(_insert(kind), values)
        else:
            before = self._entries.get(name)
            before = kind.entries(old) if before is None else before
            self._change(kind, key, document, entries, before)
        if kind.name in _SHORT and entries != before:
            self._move(kind, key, before, entries)
        if kind.name in _NOT_KEPT:
            self._known.pop(name, None)  # it was looked for, perhaps in vain
        else:
            self._known[name], self._entries[name] = record, entries
        if old is None and kind is MESSAGE:  # a search is to find it
            said: Any = record
            self.connection.stored += (said,)

    def _change(
        self, kind: Kind[Any], key: Key, document: bytes | str, now: Sequence[Entry], before: Sequence[Entry]
    ) -> None:
        values: list[Any] = [document]
        changed = list[int]()
        if now != before:
            for place, entry in enumerate(now):
                if entry != before[place]:
                    changed.append(place)
                    values += entry or _NONE
        values.append(key)
        self.connection.execute(_update(kind, tuple(changed)), values)

    def _drop(self, kind: Kind[T], key: Key) -> None:
        record = self.get(kind, key)
        if record is None:
            return
        if kind.name in _SHORT:
            self._move(kind, key, kind.entries(record), None)
        self.connection.execute(f'DELETE FROM "{kind.name}" WHERE key = ?', (key,))
        if kind is MESSAGE:
            search.leave(self.connection, [int(key)])
        self._leave((kind.name, key))
        if kind.name not in _BESIDE:
            self._known[kind.name, key] = None

    def number(self) -> int:
        self._last += self._apart
        return self._last
