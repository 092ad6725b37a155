"""The messages that one process answers in a second, and the wait of each.

The model takes no time and every commit is on the disk. Latency is that of a single chat: from
handing a message to `accept` until the reply is handed to the adapter, with two commits in between.
All at 10 to 100,000 sessions that the store knows already, where the figures should stay the same.
"""

from __future__ import annotations

import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from tests.bench.prefill import fill
from tests.bench.rounds import World, rows, take_turns
from tests.bench.table import Rows
from tests.bench.world import Instant, running, settings

TITLE = "Messages per second and latency; model at 0 ms, durable SQLite"
SIZES = (10, 1_000, 10_000, 100_000)


async def measure() -> Rows:
    """Three lines for each number of known sessions."""
    async with AsyncExitStack() as stack:
        worlds = [await _world(stack, size) for size in SIZES]
        await take_turns(worlds)
        return [
            row
            for world in worlds
            for row in rows(world, worlds[0], rate_goal="goal ≥ 500/s", alone_goal="goal ≤ 5 ms; ")
        ]


async def _world(stack: AsyncExitStack, size: int) -> World:
    path = Path(stack.enter_context(tempfile.TemporaryDirectory()), "bench.db")
    await fill(path, size)
    gateway, chats = await stack.enter_async_context(running(settings(path), provider=Instant()))
    return World(size=size, gateway=gateway, chats=chats)
