"""Files of the layouts before there was a table for each kind of record: their facts out of them, and into one. For
each kind of fact a query, and the statements that write a fact back."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import apsw
from msgspec import Struct, field

from gateway.domain.chat import PLACED
from gateway.runtime.errors import StoreError
from gateway.store.shared.documents import dumps
from gateway.store.shared.facts import FIELDS, FORGOTTEN, Record, in_pages, lost
from gateway.store.sqlite import search
from gateway.store.sqlite.connection import change, one
from gateway.store.sqlite.messages import message_of

# Rowids from here on stand for messages that came from a Redis store: their numbers are below 2^53, and a
# partition takes four bits.
FOREIGN: Final = 1 << 60
_PARTITIONS: Final = 16
_IS_PLACED: Final = f"state IN ({', '.join(repr(str(state)) for state in PLACED)})"


class _Kind(Struct, frozen=True):
    """`rows`: where a kind's records come from, in their order. `write`: what stores a record, given its fields by
    name. `values`: what is read for a field that is not simply a column."""

    rows: str
    write: str
    values: Mapping[str, str] = field(default_factory=dict)


def _into(table: str, kind: str, *left_out: str, **others: str) -> str:
    """Store a kind's fields as columns of the same names, but those that are left out, and others with their values."""
    columns = {name: f":{name}" for name in FIELDS[kind] if name not in left_out} | others
    return f"INSERT INTO {table}({', '.join(columns)}) VALUES ({', '.join(columns.values())})"


_OF_ITEM: Final = "JOIN inbox i ON i.id = x.item WHERE i.outcome IS NULL ORDER BY x.item"
KINDS: Final[dict[str, _Kind]] = {
    "sessions": _Kind(
        "sessions s JOIN prompts p ON p.session_id = s.id"
        " LEFT JOIN tips t ON t.key = s.key AND t.session_id = s.id ORDER BY s.seq",
        f"{_into('sessions', 'sessions', 'system_prompt', 'is_tip')};"
        " INSERT INTO prompts(session_id, system_prompt) VALUES (:id, :system_prompt);"
        " INSERT INTO tips(key, session_id) SELECT :key, :id WHERE :is_tip",
        {"key": "s.key", "is_tip": "t.session_id IS NOT NULL"},
    ),
    "messages": _Kind(
        "sessions s CROSS JOIN transcript t ON t.session_id = s.id"
        " CROSS JOIN messages m ON m.id = t.message_id AND m.session_id = s.id ORDER BY s.seq, t.position",
        f"{_into('messages', 'messages', id='message_number(:id)')} ON CONFLICT DO NOTHING",
        {
            "id": "message_id(m.id)",
            "key": "m.key",
            "session_id": "m.session_id",
            "body": "as_written(body)",
            "note": "as_written(note)",
        },
    ),
    "transcripts": _Kind(
        "sessions s CROSS JOIN transcript t ON t.session_id = s.id ORDER BY s.seq, t.position",
        _into("transcript", "transcripts", "key", message_id="message_number(:message_id)"),
        {"session_id": "s.id", "message_id": "message_id(message_id)"},
    ),
    "compactions": _Kind(
        "compactions c JOIN sessions s ON s.id = c.parent_id ORDER BY s.seq, c.id",
        _into("compactions", "compactions", "key"),
        {"parent_id": "c.parent_id"},
    ),
    "hooks": _Kind(
        "owed_hooks o JOIN sessions s ON s.id = o.session_id ORDER BY o.seq", _into("owed_hooks", "hooks", "key")
    ),
    "events": _Kind("inbox ORDER BY id", _into("inbox", "events")),
    "turns": _Kind(f"turns x {_OF_ITEM}", _into("turns", "turns", "key")),
    "approvals": _Kind(f"approvals x {_OF_ITEM}, token", _into("approvals", "approvals", "key")),
    "signals": _Kind(f"signals x {_OF_ITEM}, at, kind", _into("signals", "signals", "key")),
    "outbox": _Kind(
        "outbox o LEFT JOIN (SELECT seq, row_number() OVER (PARTITION BY lane ORDER BY place, seq) - 1 AS ahead"
        f" FROM outbox WHERE {_IS_PLACED}) q ON q.seq = o.seq ORDER BY o.seq",
        # No generation's claim: a row that is being sent is one that a crash has left. Whatever is emitted later
        # has a higher place.
        _into("outbox", "outbox", "ahead", place="coalesce(:ahead, 0)"),
    ),
    "ledger": _Kind("ledger ORDER BY at, id", _into("ledger", "ledger")),
    "spending": _Kind(
        "spending WHERE forget_at IS NULL OR forget_at >= :kept_from ORDER BY account",
        _into("spending", "spending", forget_at=":forget_at / 1000.0"),
        {"forget_at": "CAST(round(forget_at * 1000) AS INTEGER)"},
    ),
    "pins": _Kind("pins ORDER BY key", _into("pins", "pins")),
    "forgotten": _Kind("forgotten ORDER BY key, deed", _into("forgotten", "forgotten")),
    "memory": _Kind("facts ORDER BY scope, made_at, id", _into("facts", "memory")),
    "memory counters": _Kind("memory_versions ORDER BY scope", _into("memory_versions", "memory counters")),
    "reminders": _Kind("reminders ORDER BY key, number", _into("reminders", "reminders")),
    "files": _Kind(
        "files f JOIN contents c ON c.key = f.key AND c.digest = f.digest ORDER BY f.key, f.at, f.ref",
        "INSERT INTO contents(key, digest, content) VALUES (:key, :digest, :content) ON CONFLICT DO NOTHING;"
        f" {_into('files', 'files', 'content')}",
        {"key": "f.key", "digest": "f.digest"},
    ),
    "notes": _Kind("notes ORDER BY account, name", _into("notes", "notes")),
    "closed chats": _Kind("closed_chats ORDER BY lane", _into("closed_chats", "closed chats")),
    "renamed chats": _Kind("renamed_chats ORDER BY lane", _into("renamed_chats", "renamed chats")),
}


_GROWING: Final = {"sessions": "sessions", "outbox": "outbox", "compactions": "compactions", "memory": "facts"}
_APART: Final = ("system_prompt", "is_tip", "ahead", "key")  # facts that are no columns of these tables, or stand there


def widen(connection: apsw.Connection) -> None:
    """Give the tables a column for each fact that is younger than they are."""
    for kind, table in _GROWING.items():
        there = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
        for name in FIELDS[kind]:
            if name not in there and name not in _APART:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {name}")


def dump(connection: apsw.Connection, now: float) -> Iterator[Sequence[Record]]:
    """All records in pages. Nothing may write to the file meanwhile."""
    _check_whole(connection)
    for kind in KINDS:
        yield from in_pages(_records(connection, kind, now))


def restore(connection: apsw.Connection, page: Sequence[Record]) -> None:
    """Write records in one transaction."""
    with connection:
        for record in page:
            data = record.data
            change(connection, KINDS[record.kind].write, data)
            if record.kind == "messages":
                message = message_of(data["body"], data["note"])
                search.enter(connection, message_number(data["id"]), data["key"], message)


def prepare(connection: apsw.Connection) -> None:
    """Give statements what they need: a message's id as a rowid and the other way round, and JSON as every store
    writes it."""
    functions: dict[str, Callable[..., Any]] = {
        "message_id": message_id,
        "message_number": message_number,
        "as_written": lambda text: text and dumps(json.loads(text)),
    }
    for name, function in functions.items():
        connection.create_scalar_function(name, function, 1, deterministic=True)


def _records(connection: apsw.Connection, kind: str, now: float) -> Iterator[Record]:
    fields, query = FIELDS[kind], KINDS[kind]
    values = ", ".join(query.values.get(name, name) for name in fields)
    bindings = {"kept_from": now + FORGOTTEN} if ":kept_from" in query.rows else None
    for row in connection.execute(f"SELECT {values} FROM {query.rows}", bindings):
        yield Record(kind, dict(zip(fields, row, strict=True)))


def _check_whole(connection: apsw.Connection) -> None:
    missing = one(
        connection,
        "SELECT t.message_id, t.session_id FROM transcript t LEFT JOIN messages m ON m.id = t.message_id"
        " WHERE m.id IS NULL LIMIT 1",
    )
    if missing is not None:
        raise lost(message_id(missing[0]), missing[1])


def message_number(message_id: str) -> int:
    """A message's id as a rowid. An id of a Redis store ("<number>p<partition>") becomes a rowid above all that
    SQLite gives by itself, in the same order, and reads back as it was. Raises StoreError for any other form."""
    number, mark, partition = message_id.partition("p")
    if number.isdecimal() and not mark:
        return int(number)
    if number.isdecimal() and partition.isdecimal() and len(partition) == 2 and int(partition) < _PARTITIONS:
        return FOREIGN + int(number) * _PARTITIONS + int(partition)
    raise StoreError(f"A message with the id {message_id!r} cannot be kept in a SQLite store.")


def message_id(number: int) -> str:
    """The inverse of `message_number`."""
    if number < FOREIGN:
        return str(number)
    return "{}p{:02}".format(*divmod(number - FOREIGN, _PARTITIONS))
