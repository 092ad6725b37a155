"""How many messages a second one process answers, and how long one waits.

100 chats talk at once, each saying its next thing when it was handed its reply; the model takes no
time and every commit is on the disk. Latency is that of a single chat: from handing a message to
`accept` until the reply is handed to the adapter, with two commits in between. Both at 10 to
100,000 sessions that the store knows already, where the figures should stay the same. The sizes
take turns in short rounds, so that whatever else the disk does meets all of them; figures are
medians of the rounds. CPU is that of this process, in all its threads, for one message.
"""

from __future__ import annotations

import tempfile
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from gateway.app import Gateway
from tests.bench.prefill import fill
from tests.bench.table import Row, Rows, milliseconds, percentile
from tests.bench.world import Chats, Instant, quiet, running, settings

TITLE = "Messages per second and latency; model at 0 ms, durable SQLite"
SIZES = (10, 1_000, 10_000, 100_000)
CHATS = 100
ROUNDS = 7
EACH = 8  # messages of each chat in a round
ALONE = 40  # messages of the single chat in a round


@dataclass(slots=True, kw_only=True)
class _World:
    """A running gateway that knows `size` sessions, and what was measured of it."""

    size: int
    gateway: Gateway
    chats: Chats
    rates: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)

    async def round(self) -> None:
        """One round of both kinds of talk."""
        step = max(1, self.size // CHATS)
        known = [f"known{number * step}" for number in range(min(CHATS, self.size))]
        talking = known + [f"fresh{number}" for number in range(CHATS - len(known))]
        start, cpu = time.perf_counter(), time.process_time()
        await self.chats.talk_all(talking, EACH)
        self.rates.append(CHATS * EACH / (time.perf_counter() - start))
        await quiet(self.gateway)
        self.cpu.append((time.process_time() - cpu) / (CHATS * EACH))
        self.alone += await self.chats.talk("known0", ALONE)
        await quiet(self.gateway)


async def measure() -> Rows:
    """Three lines for each number of known sessions."""
    async with AsyncExitStack() as stack:
        worlds = [await _world(stack, size) for size in SIZES]
        for _ in range(ROUNDS + 1):
            for world in worlds:
                await world.round()
        for world in worlds:  # the first round loads and compiles what the others find ready
            del world.rates[0], world.cpu[0], world.alone[:ALONE]
        return [row for world in worlds for row in _rows(world, worlds[0])]


async def _world(stack: AsyncExitStack, size: int) -> _World:
    path = Path(stack.enter_context(tempfile.TemporaryDirectory()), "bench.db")
    await fill(path, size)
    gateway, chats, _ = await stack.enter_async_context(running(settings(path), provider=Instant()))
    return _World(size=size, gateway=gateway, chats=chats)


def _rows(world: _World, first: _World) -> Rows:
    label = f"{world.size:>7,} known sessions"
    rate, p50 = median(world.rates), percentile(world.alone, 0.5)
    return [
        Row(
            f"{label}: {CHATS} chats", f"{rate:,.0f}/s", f"goal ≥ 500/s; {rate / median(first.rates):.0%} of the first"
        ),
        Row(f"{label}: CPU a message", milliseconds(median(world.cpu))),
        Row(
            f"{label}: one chat, p50",
            milliseconds(p50),
            f"goal ≤ 5 ms; {p50 / percentile(first.alone, 0.5):.0%} of the first;"
            f" p95 {milliseconds(percentile(world.alone, 0.95))}",
        ),
    ]
