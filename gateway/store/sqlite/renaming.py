"""Chats that their platform calls by another name than before."""

from __future__ import annotations

import apsw

from gateway.domain.chat import ChatAddress
from gateway.store.shared.documents import storable
from gateway.store.shared.platforms import chat_name
from gateway.store.sqlite import outbox
from gateway.store.sqlite.connection import change, one


def rename(connection: apsw.Connection, platform: str, before: str, after: str) -> None:
    """`before` is called `after` now; the chat's first name keeps everything, and is open."""
    first, _ = names(connection, platform, before)
    first = first or before
    if first == after:
        return
    _note(connection, _lane(platform, after), first, None)
    _note(connection, _lane(platform, before), None, after)
    _note(connection, _lane(platform, first), None, after)
    outbox.reopen(connection, _lane(platform, first))


def _note(connection: apsw.Connection, lane: str, first: str | None, later: str | None) -> None:
    """Note one name or both; None leaves a name as it was, and a first name that is known never changes."""
    change(
        connection,
        "INSERT INTO renamed_chats(lane, first, later) VALUES (?,?,?)"
        " ON CONFLICT DO UPDATE SET first = coalesce(first, excluded.first), later = coalesce(excluded.later, later)",
        (lane, *(None if name is None else storable(name) for name in (first, later))),
    )


def names(connection: apsw.Connection, platform: str, chat: str) -> tuple[str | None, str | None]:
    """The chat's first name and its present name, each None where it is `chat`."""
    row = one(connection, "SELECT first, later FROM renamed_chats WHERE lane = ?", (_lane(platform, chat),))
    return (None, None) if row is None else (row[0], row[1])


def _lane(platform: str, chat: str) -> str:
    return chat_name(ChatAddress(platform=platform, chat=chat))
