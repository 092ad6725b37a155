"""The same with the store on a Redis server that syncs its file on every write.

The server is a process of its own, one for each number of known sessions; its CPU is shown beside
that of this process. A message is two round trips to be accepted and claimed, some that read, and
one that ends the turn before the reply is handed over. The bare loop beside it calls a script that
does one SET: one after the other, and a hundred at a time, as the store's own steps share a trip.
Then what a turn costs in a long conversation, whose rest should not depend on the length.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from redis.asyncio import Redis

from tests.bench import transcript
from tests.bench.rounds import CHATS, ROUNDS, World, known, rows
from tests.bench.served import fill, store_at, synced_server
from tests.bench.table import Row, Rows, milliseconds, percentile
from tests.bench.world import REPLY, Instant, running, settings
from tests.redis_server import RedisServer

TITLE = "Messages per second and latency; model at 0 ms, Redis with appendfsync always"
SIZES = (10, 1_000, 10_000, 100_000)
BARE = 400  # calls of the bare loop in a round, of either kind
_SET = "redis.call('SET', KEYS[1], ARGV[1]) return 1"


async def measure() -> Rows:
    """The bare loop, three lines for each number of known sessions, four for each length."""
    async with AsyncExitStack() as stack:
        worlds = [await _world(stack, size) for size in SIZES]
        bare = await stack.enter_async_context(_bare(stack.enter_context(synced_server())))
        for number in range(ROUNDS + 1):
            await bare.round()
            for world in worlds:
                await world.round()
                if not number:
                    world.forget()
        found = [*bare.rows()]
        for world in worlds:
            found += rows(world, worlds[0], rate_goal="goal ≥ 400/s", alone_goal="")
        one = percentile(worlds[0].alone, 0.5) / median(bare.alone)
        found.append(Row("one chat, p50, in bare round trips", f"{one:.1f}"))
    with synced_server() as server:
        store = partial(store_at, server.url)
        found += transcript.rows([await transcript.turn(length, store) for length in transcript.LENGTHS])
    return found


async def _world(stack: AsyncExitStack, size: int) -> World:
    server = stack.enter_context(synced_server())
    await fill(server, [known(number) for number in range(size)], 2)
    config = settings(Path(stack.enter_context(tempfile.TemporaryDirectory()), "home.db"))
    running_gateway = running(config, store=store_at(server.url), provider=Instant())
    gateway, chats = await stack.enter_async_context(running_gateway)
    return World(size=size, gateway=gateway, chats=chats, other_cpu=partial(_cpu, server))


def _cpu(server: RedisServer) -> float:
    with server.client() as client:
        spent = client.info("cpu")
    return float(spent["used_cpu_user"]) + float(spent["used_cpu_sys"])


@dataclass(slots=True, kw_only=True)
class _Bare:
    """Calls of a script with one write, from this process: seconds of each alone, and how many a
    second a hundred at a time."""

    client: Redis
    sha: str
    alone: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    async def round(self) -> None:
        for number in range(BARE):
            start = time.perf_counter()
            await self.client.evalsha(self.sha, 1, f"bare{number}", REPLY)
            self.alone.append(time.perf_counter() - start)
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(BARE // CHATS):
            batch = self.client.pipeline(transaction=False)
            for number in range(CHATS):
                batch.evalsha(self.sha, 1, f"bare{number}", REPLY)
            await batch.execute()
        self.rates.append(BARE / (time.perf_counter() - start))
        self.cpu.append((time.process_time() - cpu) / BARE)

    def rows(self) -> Rows:
        return [
            Row("bare script, one after the other: p50", milliseconds(percentile(self.alone, 0.5))),
            Row(f"bare script, {CHATS} at a time", f"{median(self.rates):,.0f}/s"),
            Row(f"bare script, {CHATS} at a time: CPU a call", milliseconds(median(self.cpu))),
        ]


@asynccontextmanager
async def _bare(server: RedisServer) -> AsyncIterator[_Bare]:
    client = Redis(port=server.port)
    try:
        yield _Bare(client=client, sha=await client.script_load(_SET))
    finally:
        await client.aclose()
