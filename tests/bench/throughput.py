"""The messages that one process answers in a second, and the wait of each.

The model takes no time and every commit is on the disk. Latency is that of a single chat: from
handing a message to `accept` until the reply is handed to the adapter, with two commits in between.
All at 10 to 100,000 sessions that the store knows already, where the figures should stay the same (goal: within 5 %).
"""

from __future__ import annotations

import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median

from tests.bench.loopback import durable
from tests.bench.prefill import fill
from tests.bench.rounds import ALONE, World, rows, take_turns
from tests.bench.table import Row, Rows, milliseconds
from tests.bench.world import REPLY, Instant, running, settings

TITLE = "Messages per second and latency; model at 0 ms, durable SQLite"
SIZES = (10, 1_000, 10_000, 100_000)


async def measure() -> Rows:
    """Three lines for each number of known sessions, and one beside a bare commit."""
    async with AsyncExitStack() as stack:
        worlds = [await _world(stack, size) for size in SIZES]
        connection = durable(Path(stack.enter_context(tempfile.TemporaryDirectory()), "bare.db"))
        commits: list[float] = []

        async def bare() -> None:
            for _ in range(ALONE):
                start = time.perf_counter()
                connection.execute("INSERT INTO said VALUES (?,?)", ("chat", REPLY)).fetchall()
                commits.append(time.perf_counter() - start)

        await take_turns(worlds, bare)
        commit, p50 = median(commits), median(worlds[0].alone)
        return [
            *(row for world in worlds for row in rows(world, worlds[0])),
            Row("bare loop: one commit, p50", milliseconds(commit)),
            Row("on SQLite: one chat, p50", milliseconds(p50), "it waits for two", p50 / commit, "one bare commit"),
        ]


async def _world(stack: AsyncExitStack, size: int) -> World:
    path = Path(stack.enter_context(tempfile.TemporaryDirectory()), "bench.db")
    await fill(path, size)
    gateway, chats = await stack.enter_async_context(running(settings(path), provider=Instant()))
    return World(size=size, gateway=gateway, chats=chats)
