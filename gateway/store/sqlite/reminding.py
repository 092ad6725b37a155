"""Reminders: rows with a version, of which those with a time are in its order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

import apsw
from msgspec import Struct

from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.domain.reminder import Reminder
from gateway.store.records import Arrival, InboxItem
from gateway.store.shared.agenda import Advance
from gateway.store.shared.documents import reminder_from, reminder_json, storable
from gateway.store.shared.platforms import Platforms, chat_name
from gateway.store.sqlite import inbox, outbox
from gateway.store.sqlite.connection import Row, change, many, one
from gateway.store.sqlite.outbox import Sender

_COLUMNS: Final = "reminder, number, parked"
_WAITS: Final = "due_at IS NOT NULL AND parked = 0"  # in the words of the index
_NO_CAP: Final = 1_000_000  # what the gateway itself puts into a lane is never refused


def add(connection: apsw.Connection, reminder: Reminder, most: int, in_chat: int) -> Reminder | None:
    """Store a reminder with the next number of its key, unless its id is known; None: its person or its chat has too
    many."""
    known = _by_id(connection, reminder.id)
    if known is not None:
        return known
    chat, person = chat_name(reminder.key.address), storable(reminder.source.user)
    row = one(
        connection,
        "SELECT count(*), count(*) FILTER (WHERE person = ?) FROM reminders WHERE chat = ? AND open",
        (person, chat),
    )
    assert row is not None
    if row[0] >= in_chat or row[1] >= most:
        return None
    change(
        connection,
        "INSERT INTO reminders(id, key, chat, platform, person, number, version, open, due_at, parked, reminder)"
        " VALUES (?,?,?,?,?, 1 + coalesce((SELECT max(number) FROM reminders WHERE key = ?), 0), ?,?,?,"
        " EXISTS (SELECT 1 FROM closed_chats WHERE lane = ?), ?)",
        (
            *(reminder.id, reminder.key.text, chat, chat.partition("/")[0], person, reminder.key.text),
            *(reminder.version, reminder.is_open, reminder.due_at, chat, reminder_json(reminder)),
        ),
    )
    return _by_id(connection, reminder.id)


def of_id(connection: apsw.Connection, chat: ChatAddress, reminder_id: str) -> Reminder | None:
    """The reminder of this id in a chat."""
    row = one(
        connection,
        f"SELECT {_COLUMNS} FROM reminders WHERE id = ? AND chat = ?",
        (storable(reminder_id), chat_name(chat)),
    )
    return None if row is None else _read(row)


def of_key(connection: apsw.Connection, key: SessionKey, over: int) -> list[Reminder]:
    """A key's open reminders by their number, and its latest others."""
    open_ = f"SELECT {_COLUMNS} FROM reminders WHERE chat = ? AND open AND key = ? ORDER BY number"
    others = f"SELECT {_COLUMNS} FROM reminders WHERE key = ? AND NOT open ORDER BY number DESC LIMIT ?"
    rows = many(connection, open_, (chat_name(key.address), key.text))
    return [_read(row) for row in (*rows, *many(connection, others, (key.text, over)))]


def has_any(connection: apsw.Connection, key: SessionKey) -> bool:
    """Say whether a key ever had a reminder."""
    return one(connection, "SELECT 1 FROM reminders WHERE key = ? LIMIT 1", (key.text,)) is not None


def due(connection: apsw.Connection, now: float, limit: int, platforms: Platforms) -> list[Reminder]:
    """Reminders whose time has come, earliest first."""
    query = (
        f"SELECT due_at, {_COLUMNS} FROM reminders WHERE platform = ? AND due_at <= ? AND {_WAITS}"
        " ORDER BY due_at LIMIT ?"
    )
    served = [name for name in _platforms(connection) if platforms.has_chat_of(name)]
    found = [row for platform in served for row in many(connection, query, (platform, now, limit))]
    return [_read(row[1:]) for row in sorted(found, key=lambda row: float(row[0]))[:limit]]


def _platforms(connection: apsw.Connection) -> Iterator[str]:
    """The platforms that have reminders which wait, each by one step into the index."""
    name = ""
    while (
        row := one(connection, f"SELECT min(platform) FROM reminders WHERE platform > ? AND {_WAITS}", (name,))
    ) and (name := row[0] or ""):
        yield name


class Replaced(Struct, frozen=True, kw_only=True):
    """The result of a change. `first`: nobody had changed the reminder since."""

    first: bool
    queued: Sequence[InboxItem] = ()
    advances: tuple[Advance, ...] = ()


def replace(
    connection: apsw.Connection,
    reminders: Sequence[Reminder],
    shown: Sequence[Outbound],
    arrivals: Sequence[Arrival],
    idle: Collection[str],
    sender: Sender,
) -> Replaced:
    """Put reminders into the places of the versions before them, all or none, with the rows that they show and the
    items that they make; the first item of each lane of `idle` is claimed."""
    present = "SELECT 1 FROM reminders WHERE id = ? AND version = ?"
    if not all(one(connection, present, (each.id, each.version - 1)) for each in reminders):
        return Replaced(first=False)
    for each in reminders:
        change(
            connection,
            "UPDATE reminders SET version = ?, open = ?, due_at = ?, reminder = ? WHERE id = ?",
            (each.version, each.is_open, each.due_at, reminder_json(each), each.id),
        )
    _, queued = inbox.accept(connection, arrivals, _NO_CAP, idle)
    return Replaced(first=True, queued=queued, advances=outbox.emit(connection, shown, sender))


def rows_of_chat(connection: apsw.Connection, chat: ChatAddress, row_ids: Iterable[str]) -> list[Outbound]:
    """The rows of these ids that are of a chat."""
    rows = (outbox.by_id(connection, row_id) for row_id in row_ids)
    return [row for row in rows if row is not None and chat_name(row.to) == chat_name(chat)]


def _by_id(connection: apsw.Connection, reminder_id: str) -> Reminder | None:
    row = one(connection, f"SELECT {_COLUMNS} FROM reminders WHERE id = ?", (reminder_id,))
    return None if row is None else _read(row)


def _read(row: Row | Sequence[object]) -> Reminder:
    document, number, parked = row
    return reminder_from(str(document), str(number), parked=bool(parked))
