"""Reminders that wait: what it takes to add them, and what they cost until their time comes.

30,000 wait for a moment far away, 100 of each of 300 people in chats of their own, and as many in groups that are full.
A look for what is due is made each second of a gateway's life, so its figure is the CPU of this process and of the
server, if there is one. A start is from opening the store to the end of its first look.
"""

from __future__ import annotations

import asyncio
import gc
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from gateway.domain.chat import SessionKey, Source
from gateway.domain.reminder import Reminder, ReminderRules
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.sqlite.backend import SqliteStore
from tests.bench.served import cpu, store_at, synced_server
from tests.bench.table import Row, Rows, memory, milliseconds
from tests.support.redis_server import RedisServer

TITLE = "60,000 reminders that wait"
PEOPLE = 300
EACH = 100
_FULL = ReminderRules().per_chat
_LATER = 10 * 365 * 86_400.0
_AT_ONCE = 500
_LOOKS = 300
_STARTS = 5

Open = Callable[[], Store]


async def measure() -> Rows:
    """Five lines for each store."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "bench.db")
        found = await _of("SQLite", lambda: SqliteStore(path, clock=SystemClock()), None)
    with synced_server() as server:
        return [*found, *await _of("Redis", lambda: store_at(server.url), server)]


async def _of(name: str, opened: Open, server: RedisServer | None) -> list[Row]:
    empty = await _starts(opened)
    store = opened()
    await store.open()
    none = await _looks(store, server)
    before = memory()
    alone = await _add(store, lambda each: _reminder(f"p{each % PEOPLE}", str(each), f"p{each % PEOPLE}"))
    group = await _add(store, lambda each: _reminder(f"group{each // _FULL}", f"g{each}", f"p{each % PEOPLE}"))
    many = await _looks(store, server)
    gc.collect()
    grown = memory() - before
    await store.aclose()
    full = await _starts(opened)
    return [
        Row(f"{name}: to add one, in chats of their own", milliseconds(alone / len(_NUMBERS))),
        Row(f"{name}: to add one, in groups that get full", milliseconds(group / len(_NUMBERS))),
        Row(f"{name}: a look while they wait, CPU", milliseconds(many), "", many / none, "one while none waits"),
        Row(f"{name}: memory of this process", f"{grown:+.0f} MB", "after adding and looking"),
        Row(f"{name}: a start", milliseconds(full), "", full / empty, "one while none waits"),
    ]


_NUMBERS = range(PEOPLE * EACH)


def _reminder(chat: str, number: str, person: str) -> Reminder:
    now = SystemClock().now()
    kind = "group" if chat.startswith("group") else "direct"
    return Reminder(
        id=f"r{number}",
        key=SessionKey(platform="bench", chat=chat),
        source=Source(platform="bench", chat=chat, chat_type=kind, user=person, user_name=f"Person {person}"),
        kind="say",
        text=f"Number {number}: water the plants on the balcony, and the ones in the hall.",
        zone="Europe/Berlin",
        start="2036-11-23T09:00:00",
        due_at=now + _LATER,
        settled_until=now,
        token=f"t{number}",
        made_by=f"e{number}",
        made_at=now,
    )


async def _add(store: Store, made: Callable[[int], Reminder]) -> float:
    """The seconds that it takes to add them, many at once."""
    start = time.perf_counter()
    for first in range(0, len(_NUMBERS), _AT_ONCE):
        some = _NUMBERS[first : first + _AT_ONCE]
        stored = await asyncio.gather(*(store.add_reminder(made(each), EACH, _FULL) for each in some))
        assert all(stored)
    return time.perf_counter() - start


async def _looks(store: Store, server: RedisServer | None) -> float:
    """The seconds of CPU that a look takes, here and in the server."""
    start = time.process_time() + _spent(server)
    for _ in range(_LOOKS):
        assert await store.due_reminders(SystemClock().now(), 100) == []
    return (time.process_time() + _spent(server) - start) / _LOOKS


async def _starts(opened: Open) -> float:
    """The seconds of a start."""
    took = []
    for _ in range(_STARTS):
        start = time.perf_counter()
        store = opened()
        await store.open()
        await store.due_reminders(SystemClock().now(), 100)
        took.append(time.perf_counter() - start)
        await store.aclose()
    return median(took)


def _spent(server: RedisServer | None) -> float:
    return 0.0 if server is None else cpu(server)
