"""Messages as a search reads them."""

from __future__ import annotations

from typing import Final

import apsw

from gateway.domain.chat import SessionKey
from gateway.domain.message import HOST, HostNote, Message, noted
from gateway.store.shared.documents import loads
from gateway.store.sqlite.connection import Row, one

MESSAGE_COLUMNS: Final = "m.id, m.body, m.note, m.tokens, m.at"


def is_of(connection: apsw.Connection, number: int, key: SessionKey) -> bool:
    """Whether this is a message of the key."""
    in_range = number < 1 << 63  # SQLite takes no higher one
    return (
        in_range and one(connection, "SELECT 1 FROM messages WHERE id = ? AND key = ?", (number, key.text)) is not None
    )


def message_of(body: str, note: str | None) -> Message:
    """A message from what a provider sees of it, and the host's note without the facts that have columns."""
    return noted(loads(body), **(loads(note) if note else {}))


def message_from(row: Row) -> Message:
    """A row of MESSAGE_COLUMNS, with its full host note."""
    number, body, extra, tokens, at = row
    note: HostNote = loads(extra) if extra else {}
    note["id"], note["at"] = str(number), at
    if tokens is not None:
        note["tokens"] = tokens
    message: Message = loads(body)
    message[HOST] = note
    return message
