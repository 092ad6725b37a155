"""Message rows, which never change, and the transcripts that refer to them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from itertools import islice
from typing import Final

import apsw

from gateway.domain.chat import SessionKey
from gateway.domain.message import HOST, HostNote, Message, note_of, noted, wire
from gateway.runtime.errors import StoreError
from gateway.store.records import Found
from gateway.store.shared.documents import dumps, loads, unkept_note
from gateway.store.shared.transcripts import size_stored
from gateway.store.sqlite.connection import Connection, Row, change, one

MESSAGE_COLUMNS: Final = "m.id, m.body, m.note, m.tokens, m.at"
# Rowids from here on stand for messages that came from a Redis store: their numbers are below 2^53, and a
# partition takes four bits.
_FOREIGN: Final = 1 << 60
_PARTITIONS: Final = 16
_AT_ONCE: Final = 256  # rows


def of_session(connection: apsw.Connection, session_id: str, position: int) -> tuple[list[Message], int]:
    """The transcript from `position` on, and the bytes of memory that it takes."""
    found, size = list[Message](), 0
    with closing(
        connection.execute(
            f"SELECT {MESSAGE_COLUMNS} FROM transcript t JOIN messages m ON m.id = t.message_id"
            " WHERE t.session_id = ? AND t.position >= ? ORDER BY t.position",
            (session_id, position),
        )
    ) as cursor:
        while rows := list(islice(cursor, _AT_ONCE)):
            messages, more = _messages_from(rows)
            found += messages
            size += more
    return found, size


def by_number(connection: apsw.Connection, number: int) -> Found | None:
    """A message of any conversation."""
    row = number < 1 << 63 and one(
        connection, f"SELECT m.session_id, {MESSAGE_COLUMNS} FROM messages m WHERE m.id = ?", (number,)
    )
    return Found(session_id=row[0], message=message_from(row[1:]), at=row[-1]) if row else None


def is_of(connection: apsw.Connection, number: int, key: SessionKey) -> bool:
    """Say whether this is a message of the key."""
    in_range = number < 1 << 63  # SQLite takes no higher one
    return (
        in_range and one(connection, "SELECT 1 FROM messages WHERE id = ? AND key = ?", (number, key.text)) is not None
    )


def refer(
    connection: apsw.Connection,
    session_id: str,
    key: SessionKey,
    position: int,
    messages: Sequence[Message],
    at: float,
) -> tuple[Message, ...]:
    """Put messages at the end of a transcript; messages without an id are stored first."""
    stored, rows = list[Message](), list[tuple[str, int, int]]()
    for place, message in enumerate(messages, position):
        number, kept = _stored(connection, session_id, key, message, at)
        stored.append(kept)
        rows.append((session_id, place, number))
    connection.executemany("INSERT INTO transcript(session_id, position, message_id) VALUES (?,?,?)", rows)
    return tuple(stored)


def store(
    connection: apsw.Connection, session_id: str, key: SessionKey, new: Sequence[Message], at: float
) -> list[int]:
    """Store messages that no transcript holds yet; their numbers."""
    return [_stored(connection, session_id, key, message, at)[0] for message in new]


def _stored(
    connection: apsw.Connection, session_id: str, key: SessionKey, message: Message, at: float
) -> tuple[int, Message]:
    """A message's number, and the message as stored."""
    note = note_of(message)
    if "id" in note:
        return message_number(note["id"]), message
    assert isinstance(connection, Connection)
    body, extra = message_columns(message)
    at = note.get("at", at)
    lane = key.text
    change(
        connection,
        "INSERT INTO messages(key, session_id, role, body, note, tokens, at) VALUES (?,?,?,?,?,?,?)",
        (lane, session_id, message["role"], body, extra, note.get("tokens"), at),
    )
    number = connection.last_insert_rowid()
    connection.stored += ((number, lane, message),)
    return number, noted(message, id=message_id(number), at=at)


# -- rows ------------------------------------------------------------------------------------


def message_number(message_id: str) -> int:
    """A message's id as a rowid. An id of a Redis store ("<number>p<partition>") becomes a rowid above all that
    SQLite gives by itself, in the same order, and reads back as it was. Raises StoreError for any other form."""
    number, mark, partition = message_id.partition("p")
    if number.isdecimal() and not mark:
        return int(number)
    if number.isdecimal() and partition.isdecimal() and len(partition) == 2 and int(partition) < _PARTITIONS:
        return _FOREIGN + int(number) * _PARTITIONS + int(partition)
    raise StoreError(f"A message with the id {message_id!r} cannot be kept in a SQLite store.")


def message_id(number: int) -> str:
    """The inverse of `message_number`."""
    if number < _FOREIGN:
        return str(number)
    return "{}p{:02}".format(*divmod(number - _FOREIGN, _PARTITIONS))


def message_columns(message: Message) -> tuple[str, str | None]:
    """(body, note): the message as a provider sees it, and the host's note without the facts that have columns."""
    note = unkept_note(message)
    return dumps(wire(message)), dumps(note) if note else None


def message_of(body: str, note: str | None) -> Message:
    """The inverse of `message_columns`."""
    return noted(loads(body), **(loads(note) if note else {}))


def message_from(row: Row) -> Message:
    """A row of MESSAGE_COLUMNS, with its full host note."""
    return _messages_from([row])[0][0]


def _messages_from(rows: Sequence[Row]) -> tuple[list[Message], int]:
    """The same of many rows, and the bytes of memory that the messages take."""
    bodies = [row[1] for row in rows]
    made: list[Message] = loads(f"[{','.join(bodies)}]")
    size = size_stored(bodies)
    for message, (number, _, extra, tokens, at) in zip(made, rows, strict=True):
        note: HostNote = {}
        if extra:
            note = loads(extra)
            size += sys.getsizeof(extra)
        note["id"] = str(number) if number < _FOREIGN else message_id(number)
        note["at"] = at
        if tokens is not None:
            note["tokens"] = tokens
        message[HOST] = note
    return made, size
