"""The same with the store on a Redis server that syncs its file on every write.

The server is a process of its own, one for each number of known sessions; its CPU is shown beside
that of this process. A message is six calls: one accepts it and claims its lane, two read, one ends the
turn before the reply is handed over; then one marks that, and one enters both messages into the
index. The bare loop beside it makes as many calls, of a script with a single write, for as many
chats, each on a connection of its own as the library's client does it, and nothing else.
Then what a turn costs in a long conversation.
"""

from __future__ import annotations

import asyncio
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
from tests.bench.rounds import ALONE, CHATS, EACH, World, known, rows, take_turns
from tests.bench.served import cpu, fill, store_at, synced_server
from tests.bench.table import Row, Rows, milliseconds, percentile
from tests.bench.world import REPLY, Instant, running, settings
from tests.support.redis_server import RedisServer

TITLE = "Messages per second and latency; model at 0 ms, Redis with appendfsync always"
SIZES = (10, 1_000, 10_000, 100_000)
CALLS = 6  # that a plain message takes
_SET = "redis.call('SET', KEYS[1], ARGV[1]) return 1"


async def measure() -> Rows:
    """The bare loop, three lines for each number of known sessions, four for each length."""
    async with AsyncExitStack() as stack:
        worlds = [await _world(stack, size) for size in SIZES]
        bare = await stack.enter_async_context(_bare(stack.enter_context(synced_server())))
        await take_turns(worlds, bare.round)
        found = [*bare.rows()]
        for world in worlds:
            found += rows(world, worlds[0])
        found += bare.beside(worlds[0])
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
    return World(size=size, gateway=gateway, chats=chats, other_cpu=partial(cpu, server))


@dataclass(slots=True, kw_only=True)
class _Bare:
    """A loop that only calls a script with one write, through the library's own client: seconds of
    each call alone, and messages a second and CPU seconds a message with all chats at once."""

    client: Redis
    sha: str
    alone: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    async def round(self) -> None:
        for _ in range(ALONE):
            start = time.perf_counter()
            await self._call("alone")
            self.alone.append(time.perf_counter() - start)
        start, cpu = time.perf_counter(), time.process_time()
        async with asyncio.TaskGroup() as group:
            for number in range(CHATS):
                group.create_task(self._talk(f"chat{number}"))
        self.rates.append(CHATS * EACH / (time.perf_counter() - start))
        self.cpu.append((time.process_time() - cpu) / (CHATS * EACH))

    async def _talk(self, chat: str) -> None:
        for _ in range(EACH * CALLS):
            await self._call(chat)

    async def _call(self, key: str) -> None:
        await self.client.evalsha(self.sha, 1, key, REPLY)

    def rows(self) -> Rows:
        return [
            Row(f"bare loop: {CHATS} chats", f"{median(self.rates):,.0f}/s", f"{CALLS} calls a message"),
            Row("bare loop: CPU a message", milliseconds(median(self.cpu))),
            Row("bare loop: one call, p50", milliseconds(percentile(self.alone, 0.5))),
        ]

    def beside(self, world: World) -> Rows:
        loop = f"a bare loop ({CALLS} calls a message)"
        rate, cpu, p50 = median(world.rates), median(world.cpu), percentile(world.alone, 0.5)
        return [
            Row("on Redis: messages a second", f"{rate:,.0f}/s", "", rate / median(self.rates), loop),
            Row("on Redis: CPU a message", milliseconds(cpu), "", cpu / median(self.cpu), loop),
            Row("on Redis: one chat, p50", milliseconds(p50), "", p50 / percentile(self.alone, 0.5), "one bare call"),
        ]


@asynccontextmanager
async def _bare(server: RedisServer) -> AsyncIterator[_Bare]:
    client = Redis(port=server.port, max_connections=CHATS)
    try:
        yield _Bare(client=client, sha=await client.script_load(_SET))
    finally:
        await client.aclose()
