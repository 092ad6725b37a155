"""Fills a store with sessions that somebody used once, quickly.

One session is made through the store's own port; the others are copies of its records, put by one step for many of
them, so that 100,000 take seconds.
"""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from gateway.runtime.structs import replace
from gateway.store.kinds import CALL, EVENT, ITEM, MESSAGE, PROMPT, ROW, SESSION, EventRecord, event_name
from gateway.store.space import Kind, Space
from gateway.store.sqlite import search
from gateway.store.sqlite.connection import connect_writer
from gateway.store.sqlite.records import FileRecords, WrittenRecords
from gateway.store.steps import spending
from tests.bench.world import Instant, quiet, running, said, settings

_SEED: Final = "known0"
_TOGETHER: Final = 500  # sessions
_COPIED: Final = (EVENT, ITEM, SESSION, PROMPT, MESSAGE, ROW, CALL)

Seed = dict[Kind[Any], list[Any]]


async def fill(path: Path, sessions: int) -> None:
    """A store at `path` that knows `sessions` sessions of two messages each, of chats `known0` on."""
    async with running(settings(path), provider=Instant()) as (gateway, chats):
        await chats.say(_SEED, said(0))
        await quiet(gateway)
    if sessions > 1:
        await asyncio.to_thread(_copy, path, sessions)


def _copy(path: Path, sessions: int) -> None:
    with closing(connect_writer(path)) as connection:
        connection.execute("PRAGMA synchronous = OFF").fetchall()
        seed: Seed = {kind: list(FileRecords(connection).every(kind)) for kind in _COPIED}
        written = WrittenRecords(connection)
        for first in range(1, sessions, _TOGETHER):
            with connection:
                written.run(_put_copies, seed, range(first, min(sessions, first + _TOGETHER)))
                search.enter_stored(connection)
            connection.stored = ()
        # Leave nothing in the log, as a store that has known its sessions for a while.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def _put_copies(space: Space, seed: Seed, numbers: range) -> None:
    for number in numbers:
        _put_copy(space, seed, number)


def _put_copy(space: Space, seed: Seed, number: int) -> None:
    (item,), (kept,), (row,) = seed[ITEM], seed[SESSION], seed[ROW]
    key = replace(item.key, chat=f"known{number}")
    session_id, new = f"s_known{number}", space.number()
    space.put(EVENT, EventRecord(name=event_name(key.platform, f"known{number}"), item=new))
    space.put(ITEM, replace(item, number=new, key=key))
    space.put(SESSION, replace(kept, seq=space.number(), session=replace(kept.session, id=session_id, key=key)))
    space.put(PROMPT, replace(seed[PROMPT][0], session_id=session_id))
    for place, message in enumerate(seed[MESSAGE]):
        new = space.number()
        space.put(MESSAGE, replace(message, number=new, key=key, session_id=session_id))
        space.extend(session_id, [new], at=place)
    new = space.number()
    out = replace(row.out, id=f"{row.out.id}-{number}", key=key, to=replace(row.out.to, chat=key.chat))
    space.put(ROW, replace(row, seq=new, place=new, out=out))
    for call in seed[CALL]:
        spending.enter_call(space, replace(call, number=space.number(), key=key, session_id=session_id))
