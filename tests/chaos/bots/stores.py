"""The store of a run: a file of its own, or a Redis server for processes that run side by side."""

from __future__ import annotations

import sqlite3
from collections.abc import Set
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import redis.asyncio

from gateway.store.kinds import ROW
from tests.chaos.redis_snapshot import accepted, unfinished
from tests.chaos.snapshot import settled

_FIELDS: Final = ("id", "chat", "thread", "kind", "text", "answers", "state", "message", "place", "error", "edits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One message of the outbox. `answers` names the event that it is about, `message` its message on the platform;
    `place`: rows of a chat go out in its order; `error`: why it was never shown; `edits`: the row whose
    message it changes."""

    id: str
    chat: str
    thread: str | None
    kind: str
    text: str
    answers: str | None
    state: str
    message: str | None
    place: int
    error: str | None = None
    edits: str | None = None


class RunStore(Protocol):
    """What a run asks its store."""

    @property
    def url(self) -> str:
        """As the configuration names it."""

    async def rows(self) -> tuple[Row, ...]:
        """The outbox, in the order of emission."""

    async def settled(self, events: Set[str]) -> bool:
        """Say whether all these events are known, and nothing is left to be done or to be shown."""


@dataclass(frozen=True, slots=True)
class FileStore:
    """A SQLite file."""

    path: Path

    @property
    def url(self) -> str:
        """Its address."""
        return f"sqlite:///{self.path}"

    async def rows(self) -> tuple[Row, ...]:
        if not self.path.exists():
            return ()
        with closing(sqlite3.connect(self.path)) as connection:
            made: Any = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'row'").fetchone()
            if made is None:
                return ()
            found = connection.execute(
                "SELECT key, doc ->> '$.out.to.chat', doc ->> '$.out.to.thread', doc ->> '$.out.kind',"
                " doc ->> '$.out.text',"
                " doc ->> '$.out.answers', ifnull(doc ->> '$.out.state', 'pending'),"
                " doc ->> '$.out.platform_message_id',"
                " doc ->> '$.place', doc ->> '$.out.error', doc ->> '$.out.edits' FROM \"row\""
                " ORDER BY doc ->> '$.place', rows_at"
            )
            return tuple(Row(**dict(zip(_FIELDS, each, strict=True))) for each in found)

    async def settled(self, events: Set[str]) -> bool:
        return settled(self.path, events)


@dataclass(frozen=True, slots=True)
class ServerStore:
    """A Redis server, whose only platform is this one."""

    url: str
    platform: str

    async def rows(self) -> tuple[Row, ...]:
        async with redis.asyncio.from_url(self.url, decode_responses=True) as client:
            names = [name async for name in client.scan_iter(match="{p??}:row:*", count=1_000)]
            texts = await client.mget(names) if names else []
        found = [ROW.record(text.partition(" ")[2]) for text in texts]
        return tuple(
            Row(
                id=each.out.id,
                chat=each.out.to.chat,
                thread=each.out.to.thread,
                kind=each.out.kind,
                text=each.out.text,
                answers=each.out.answers,
                state=each.out.state,
                message=each.out.platform_message_id,
                place=each.place,
                error=each.out.error,
                edits=each.out.edits,
            )
            for each in sorted(found, key=lambda row: (row.place, row.seq))
        )

    async def settled(self, events: Set[str]) -> bool:
        async with redis.asyncio.from_url(self.url, decode_responses=True) as client:
            return events <= await accepted(client, self.platform) and not any((await unfinished(client)).values())
