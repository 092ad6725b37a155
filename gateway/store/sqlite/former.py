"""Files of the layouts before there was a table for each kind of record: their facts, whichever of those layouts it is.

Those layouts only grew, by tables and by columns. So a file is given the tables and columns that it lacks, without
anything in them, and then one query a kind reads all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import apsw
from msgspec import Struct

from gateway.domain.chat import PLACED
from gateway.runtime.errors import StoreError
from gateway.store.shared.facts import FIELDS, Record, in_pages, lost, size_of
from gateway.store.sqlite.connection import many, one

_IS_PLACED: Final = f"state IN ({', '.join(repr(str(state)) for state in PLACED)})"
_AS_COLUMNS: Final[Mapping[str, str]] = MappingProxyType({})


class _Kind(Struct, frozen=True):
    """`table`: where a kind's facts lie, but those that are `apart`. `rows`: what is read, in its order. `values`: what
    is read for a field that is not simply a column."""

    table: str
    rows: str
    apart: tuple[str, ...] = ()
    values: Mapping[str, str] = _AS_COLUMNS


def _of_item(table: str, more: str = "") -> _Kind:
    rows = f"{table} x JOIN inbox i ON i.id = x.item WHERE i.outcome IS NULL ORDER BY x.item{more}"
    return _Kind(table, rows, ("key",))


KINDS: Final[dict[str, _Kind]] = {
    "sessions": _Kind(
        "sessions",
        "sessions s LEFT JOIN prompts p ON p.session_id = s.id"
        " LEFT JOIN tips t ON t.key = s.key AND t.session_id = s.id ORDER BY s.seq",
        ("system_prompt", "is_tip"),
        {"key": "s.key", "system_prompt": "coalesce(p.system_prompt, '')", "is_tip": "t.session_id IS NOT NULL"},
    ),
    "messages": _Kind(
        "messages",
        "sessions s CROSS JOIN transcript t ON t.session_id = s.id"
        " CROSS JOIN messages m ON m.id = t.message_id AND m.session_id = s.id ORDER BY s.seq, t.position",
        (),
        {"id": "m.id", "key": "m.key", "session_id": "m.session_id"},
    ),
    "transcripts": _Kind(
        "transcript",
        "sessions s CROSS JOIN transcript t ON t.session_id = s.id ORDER BY s.seq, t.position",
        ("key",),
        {"session_id": "s.id"},
    ),
    "compactions": _Kind(
        "compactions",
        "compactions c JOIN sessions s ON s.id = c.parent_id ORDER BY s.seq, c.id",
        ("key",),
        {"parent_id": "c.parent_id"},
    ),
    "hooks": _Kind("owed_hooks", "owed_hooks o JOIN sessions s ON s.id = o.session_id ORDER BY o.seq", ("key",)),
    "events": _Kind("inbox", "inbox ORDER BY id"),
    "turns": _of_item("turns"),
    "approvals": _of_item("approvals", ", token"),
    "signals": _of_item("signals", ", at, kind"),
    "outbox": _Kind(
        "outbox",
        "outbox o LEFT JOIN (SELECT seq, row_number() OVER (PARTITION BY lane ORDER BY place, seq) - 1 AS ahead"
        f" FROM outbox WHERE {_IS_PLACED}) q ON q.seq = o.seq ORDER BY o.seq",
        ("ahead",),
    ),
    "ledger": _Kind("ledger", "ledger ORDER BY at, id"),
    "spending": _Kind(
        "spending", "spending ORDER BY account", (), {"forget_at": "CAST(round(forget_at * 1000) AS INTEGER)"}
    ),
    "pins": _Kind("pins", "pins ORDER BY key"),
    "forgotten": _Kind("forgotten", "forgotten ORDER BY key, deed"),
    "memory": _Kind("facts", "facts ORDER BY scope, made_at, id"),
    "memory counters": _Kind("memory_versions", "memory_versions ORDER BY scope"),
    "reminders": _Kind("reminders", "reminders ORDER BY key, number"),
    "files": _Kind(
        "files",
        "files f JOIN contents c ON c.key = f.key AND c.digest = f.digest ORDER BY f.key, f.at, f.ref",
        ("content",),
        {"key": "f.key", "digest": "f.digest"},
    ),
    "notes": _Kind("notes", "notes ORDER BY account, name"),
    "closed chats": _Kind("closed_chats", "closed_chats ORDER BY lane"),
    "renamed chats": _Kind("renamed_chats", "renamed_chats ORDER BY lane"),
}
# Beside those of KINDS; `chat_names` is one of an early commit.
_OTHERS: Final = (*("prompts", "tips", "contents", "rests", "reservations", "ledger_days", "guest_book", "chat_names"),)
TABLES: Final = (*(kind.table for kind in KINDS.values()), *_OTHERS)
TRIGGERS: Final = ("message_vectors_go", "ledger_days_grow")

_LACKED: Final = (
    "CREATE TABLE IF NOT EXISTS contents(key, digest, content)",
    "CREATE TABLE IF NOT EXISTS rests(account, bucket, until, seconds)",
)
_GUESTS: Final = (
    "INSERT INTO notes(account, name, value) SELECT 'guest_book', 'version', CAST(version AS TEXT) FROM guest_book"
    " UNION ALL SELECT 'guest_book', 'book', book FROM guest_book"
)

# Messages that came from a Redis store have numbers from here on, above all others, which count on from there no more:
# a partition takes four bits. Texts name them by the ids that they had there.
FOREIGN: Final = 1 << 60
_PARTITIONS: Final = 16
_FOREIGN_ID: Final = re.compile(r"(?<![^\"])[0-9]{1,16}p(?:0[0-9]|1[0-5])(?![^\"])")  # a text, or one within JSON
_NAMES_THEM: Final = "GLOB '*[0-9]p[01][0-9]*'"
_RENUMBER: Final = f"""
CREATE TEMP TABLE renumbered AS
    SELECT id AS old, row_number() OVER (ORDER BY id) + (SELECT coalesce(max(id), 0) FROM messages
    WHERE id < {FOREIGN}) AS new FROM messages WHERE id >= {FOREIGN};
CREATE UNIQUE INDEX temp.renumbered_old ON renumbered(old);
UPDATE transcript SET message_id = (SELECT new FROM renumbered WHERE old = message_id)
    WHERE message_id IN (SELECT old FROM renumbered);
UPDATE facts SET message_id = renumbered_in(message_id) WHERE message_id {_NAMES_THEM};
UPDATE messages SET note = renumbered_in(note) WHERE note {_NAMES_THEM};
UPDATE sessions SET engine_state = renumbered_in(engine_state) WHERE engine_state {_NAMES_THEM};
UPDATE notes SET value = renumbered_in(value) WHERE value {_NAMES_THEM};
UPDATE messages SET id = (SELECT new FROM renumbered WHERE old = id) WHERE id IN (SELECT old FROM renumbered);
DROP TABLE renumbered;
INSERT INTO message_search(message_search) VALUES ('delete-all');
DELETE FROM message_vectors;
DELETE FROM meta WHERE name IN ('search_made', 'vectors');
"""


def prepare(connection: apsw.Connection) -> None:
    """Give a file what it lacks, and messages the numbers that they are to have."""
    for trigger in TRIGGERS:
        connection.execute(f"DROP TRIGGER IF EXISTS {trigger}")
    for kind, of in KINDS.items():
        wanted = [name for name in FIELDS[kind] if name not in of.apart]
        connection.execute(f"CREATE TABLE IF NOT EXISTS {of.table}({', '.join(wanted)})")
        there = {row[1] for row in many(connection, f"PRAGMA table_info({of.table})")}
        for name in wanted:
            if name not in there:
                connection.execute(f"ALTER TABLE {of.table} ADD COLUMN {name}")
    for each in _LACKED:
        connection.execute(each)
    if one(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'guest_book'"):
        connection.execute(_GUESTS)
    if one(connection, f"SELECT 1 FROM messages WHERE id >= {FOREIGN} LIMIT 1"):
        _renumber(connection)


def _renumber(connection: apsw.Connection) -> None:
    def renumbered(found: re.Match[str]) -> str:
        row = one(connection, "SELECT new FROM renumbered WHERE old = ?", (message_number(found[0]),))
        return found[0] if row is None else str(row[0])

    def renumbered_in(*texts: Any) -> str:
        return _FOREIGN_ID.sub(renumbered, texts[0])

    connection.create_scalar_function("renumbered_in", renumbered_in, 1)
    connection.execute(_RENUMBER).fetchall()


def dump(connection: apsw.Connection) -> Iterator[Sequence[Record]]:
    """All facts in pages. Nothing may write to the file meanwhile."""
    _check_whole(connection)
    for kind in KINDS:
        yield from in_pages(_records(connection, kind), size_of)


def _records(connection: apsw.Connection, kind: str) -> Iterator[Record]:
    fields, query = FIELDS[kind], KINDS[kind]
    values = ", ".join(query.values.get(name, name) for name in fields)
    for row in connection.execute(f"SELECT {values} FROM {query.rows}"):
        yield Record(kind, dict(zip(fields, row, strict=True)))


def size(connection: apsw.Connection) -> int:
    """Count the rows that `dump` reads, nearly: it joins some of them."""
    counts = [one(connection, f"SELECT count(*) FROM {kind.table}") for kind in KINDS.values()]
    return sum(int(count[0]) for count in counts if count)


def _check_whole(connection: apsw.Connection) -> None:
    missing: Any = one(
        connection,
        "SELECT t.message_id, t.session_id FROM transcript t LEFT JOIN messages m ON m.id = t.message_id"
        " WHERE m.id IS NULL LIMIT 1",
    )
    if missing is not None:
        raise lost(missing[0], missing[1])


def message_number(message_id: str) -> int:
    """The number of a message that came from a Redis store, where its id was `<number>p<partition>`. Raises StoreError
    for any other form."""
    number, _, partition = message_id.partition("p")
    if number.isdecimal() and partition.isdecimal() and len(partition) == 2 and int(partition) < _PARTITIONS:
        return FOREIGN + int(number) * _PARTITIONS + int(partition)
    raise StoreError(f"The store is damaged: no message has the id {message_id!r}.")
