"""Message rows, which never change, and the transcripts that refer to them."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

from gateway.domain.chat import SessionKey
from gateway.domain.message import Message, note_of, noted
from gateway.store.sqlite.codec import MESSAGE_COLUMNS, message_columns, message_from, message_id, message_number
from gateway.store.sqlite.connection import change, many


def of_session(connection: apsw.Connection, session_id: str, position: int) -> list[Message]:
    """The transcript from `position` on."""
    rows = many(
        connection,
        f"SELECT {MESSAGE_COLUMNS} FROM transcript t JOIN messages m ON m.id = t.message_id"
        " WHERE t.session_id = ? AND t.position >= ? ORDER BY t.position",
        (session_id, position),
    )
    return [message_from(row) for row in rows]


def refer(
    connection: apsw.Connection,
    session_id: str,
    key: SessionKey,
    position: int,
    messages: Sequence[Message],
    at: float,
) -> tuple[Message, ...]:
    """Put messages at the end of a transcript; those without an id are stored first."""
    stored = tuple(_stored(connection, session_id, key, message, at) for message in messages)
    for offset, message in enumerate(stored):
        change(
            connection,
            "INSERT INTO transcript(session_id, position, message_id) VALUES (?,?,?)",
            (session_id, position + offset, message_number(note_of(message)["id"])),
        )
    return stored


def _stored(connection: apsw.Connection, session_id: str, key: SessionKey, message: Message, at: float) -> Message:
    note = note_of(message)
    if "id" in note:
        return message
    body, extra = message_columns(message)
    at = note.get("at", at)
    change(
        connection,
        "INSERT INTO messages(key, session_id, role, body, note, tokens, at) VALUES (?,?,?,?,?,?,?)",
        (str(key), session_id, message["role"], body, extra, note.get("tokens"), at),
    )
    return noted(message, id=message_id(connection.last_insert_rowid()), at=at)


def tokens(messages: Sequence[Message]) -> int:
    """The sum of the counts that the host noted."""
    return sum(note_of(message).get("tokens", 0) for message in messages)
