"""Chats that their platform calls by another name than before."""

from __future__ import annotations

import apsw

from gateway.domain.chat import ChatAddress
from gateway.store.documents import storable
from gateway.store.sqlite import closing
from gateway.store.sqlite.codec import lane_of
from gateway.store.sqlite.connection import change, one


def rename(connection: apsw.Connection, platform: str, before: str, after: str) -> None:
    """`before` is called `after` now; what it was called first keeps everything, and is open."""
    first = first_name(connection, platform, before)
    if first == storable(after):
        return
    for name, later in ((after, None), (before, after), (first, after)):
        change(
            connection,
            "INSERT INTO chat_names(platform, name, first, later) VALUES (?,?,?,?)"
            " ON CONFLICT DO UPDATE SET first = excluded.first, later = coalesce(excluded.later, later)",
            tuple(None if each is None else storable(each) for each in (platform, name, first, later)),
        )
    closing.reopen(connection, lane_of(ChatAddress(platform=platform, chat=first)))


def first_name(connection: apsw.Connection, platform: str, chat: str) -> str:
    """What the chat was called first."""
    row = one(connection, "SELECT first FROM chat_names WHERE platform = ? AND name = ?", (platform, storable(chat)))
    return chat if row is None else str(row[0])


def later_name(connection: apsw.Connection, platform: str, chat: str) -> str | None:
    """What the chat is called instead by now."""
    row = one(connection, "SELECT later FROM chat_names WHERE platform = ? AND name = ?", (platform, storable(chat)))
    return None if row is None else row[0]
