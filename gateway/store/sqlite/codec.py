"""Rows to domain objects and back. No SQL is run here."""

from __future__ import annotations

import json
from typing import Any, Final

from gateway.domain.message import Message, noted, wire
from gateway.runtime.errors import StoreError
from gateway.store.shared.documents import dumps, storable, unkept_note
from gateway.store.shared.fields import COMPACTION, OUTBOUND, SESSION, USAGE
from gateway.store.sqlite.connection import Row

ITEM_COLUMNS: Final = "id, key, inbound, accepted_at, attempts"
OUTBOUND_COLUMNS: Final = ", ".join(OUTBOUND.names)
MESSAGE_COLUMNS: Final = "m.id, m.body, m.note, m.tokens, m.at"
COMPACTION_COLUMNS: Final = ", ".join(COMPACTION.names)
USAGE_COLUMNS: Final = ", ".join(USAGE.names)
# Always read as `sessions s JOIN prompts p`.
SESSION_COLUMNS: Final = ", ".join(f"p.{name}" if name == "system_prompt" else f"s.{name}" for name in SESSION.names)
# Rowids from here on stand for the ids of messages that came from a Redis store: their numbers are
# below 2^53, and a partition takes four bits.
_FOREIGN: Final = 1 << 60
_PARTITIONS: Final = 16


def marks(columns: str) -> str:
    """A question mark for each of these columns."""
    return ",".join("?" * (columns.count(",") + 1))


def optional(text: str | None) -> str | None:
    """`storable`, None included."""
    return None if text is None else storable(text)


def message_number(message_id: str) -> int:
    """A message's id as a rowid. One from a Redis store ("<number>p<partition>") becomes a rowid above
    all that SQLite gives by itself, in the same order, and reads back as it was. Raises StoreError for
    any other form."""
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
    """(body, note): what a provider sees, and what the host noted beyond the columns' facts."""
    note = unkept_note(message)
    return dumps(wire(message)), dumps(note) if note else None


def message_of(body: str, note: str | None) -> Message:
    """What `message_columns` made two columns of."""
    return noted(json.loads(body), **(json.loads(note) if note else {}))


def message_from(row: Row) -> Message:
    """A row of MESSAGE_COLUMNS, with its full host note."""
    number, body, extra, tokens, at = row
    message: Message = json.loads(body)
    note: dict[str, Any] = json.loads(extra) if extra else {}
    note["id"] = message_id(number)
    note["at"] = at
    if tokens is not None:
        note["tokens"] = tokens
    return noted(message, **note)
