"""What a long time does to a gateway: 100,000 messages over 1,000 chats, whose small windows are compacted again and
again. The model takes no time; the store is a SQLite file with one process, or a Redis server with two, which take
turns in being told what a chat says. A row is a twentieth of the messages.

    python -m tests.bench.soak                     both stores, about five minutes each
    python -m tests.bench.soak --messages 6000 --chats 100 sqlite
    python -m tests.bench.soak --write             keeps the rows for the plots of docs/performance.md
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from gateway.app.build import Parts, build
from gateway.providers.plugin import ModelSettings
from gateway.runtime.heap import collect_seldom
from tests.bench import figures
from tests.bench.processes import Lines, Process, process
from tests.bench.served import store_at, synced_server
from tests.bench.table import percentile
from tests.bench.world import SMALL_WINDOW, Instant, log_as_in_production, quiet, said, served, settings, sqlite
from tests.support.redis_server import RedisServer

MESSAGES: Final = 100_000
CHATS: Final = 1_000
ROWS: Final = 20
_AT_ONCE: Final = 100  # chats that talk at the same time
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_MODULE: Final = "tests.bench.soak"
_SERVE: Final = "serve"

Kind = Literal["sqlite", "redis"]
PROCESSES: Final[dict[Kind, int]] = {"sqlite": 1, "redis": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """After so many `messages` and compactions: resident memory of the heaviest process and the store (SQLite's files,
    the Redis server's memory) in MB, and of the messages since the sample before the rate a second and the wait in
    seconds (p50, p95)."""

    messages: int
    compactions: int
    memory: float
    store: float
    rate: float
    p50: float
    p95: float

    def __str__(self) -> str:
        waits = f"{self.p50 * 1000:7.1f} {self.p95 * 1000:7.1f}"
        return (
            f"{self.messages:9,} {self.compactions:11,} {self.memory:9.1f} {self.store:9.1f} {self.rate:9,.0f} {waits}"
        )


HEAD: Final = (
    f"{'messages':>9} {'compactions':>11} {'RSS MB':>9} {'store MB':>9} {'a second':>9} {'p50 ms':>7} {'p95 ms':>7}"
)


def _resident() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 1e6


def _size(folder: Path) -> float:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file()) / 1e6


def _used(server: RedisServer) -> float:
    with server.client() as client:
        return float(client.info("memory")["used_memory"]) / 1e6


class _People:
    """Chats that each say the next thing when the last was answered, each time to the next process."""

    def __init__(self) -> None:
        self.processes: list[Process] = []
        self._waiting: dict[str, asyncio.Future[float]] = {}
        self._said = 0

    def heard(self, text: str, at: float) -> None:
        """A line was answered."""
        self._waiting.pop(text).set_result(at)

    async def talk_all(self, chats: Sequence[str], each: int) -> list[float]:
        """The seconds of each exchange."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._talk(chat, each)) for chat in chats]
        return [seconds for task in tasks for seconds in task.result()]

    async def _talk(self, chat: str, each: int) -> list[float]:
        return [await self._say(chat) for _ in range(each)]

    async def _say(self, chat: str) -> float:
        self._said += 1
        text = f"{said(self._said)} {chat}"
        answered = self._waiting[text] = asyncio.get_running_loop().create_future()
        start = time.monotonic()
        self.processes[self._said % len(self.processes)].hears([text])
        return await answered - start


@asynccontextmanager
async def _world(kind: Kind, folder: Path) -> AsyncIterator[tuple[_People, Callable[[], float]]]:
    async with AsyncExitStack() as stack:
        url, size = "", partial(_size, folder)
        if kind == "redis":
            server = stack.enter_context(synced_server())
            url, size = server.url, partial(_used, server)
        people = _People()
        for _ in range(PROCESSES[kind]):
            started = process(people.heard, _MODULE, _SERVE, str(folder / "soak.db"), url)
            people.processes.append(await stack.enter_async_context(started))
        yield people, size


def _groups(messages: int, chats: int) -> Iterator[tuple[list[str], int]]:
    """Chats that talk at once, again and again in another order, and how many messages each says: four at a time."""
    left, start = messages, 0
    while left > 0:
        names = [f"c{(start + number) % chats}" for number in range(min(_AT_ONCE, chats))]
        yield names, 4
        left, start = left - 4 * len(names), start + len(names)


async def soak(kind: Kind, messages: int = MESSAGES, chats: int = CHATS) -> AsyncIterator[Sample]:
    """Talk, and give a sample of each twentieth."""
    with tempfile.TemporaryDirectory() as folder:
        async with _world(kind, Path(folder)) as (people, size):
            done, waits, begun = 0, list[float](), time.perf_counter()
            for names, each in _groups(messages, chats):
                waits += await people.talk_all(names, each)
                done += each * len(names)
                if len(waits) >= messages // ROWS or done >= messages:
                    rate = len(waits) / (time.perf_counter() - begun)
                    p50, p95 = percentile(waits, 0.5), percentile(waits, 0.95)
                    told = [json.loads(await each.ask()) for each in people.processes]
                    yield Sample(
                        messages=done,
                        compactions=told[0]["sessions"] - min(chats, done // 4),
                        memory=max(each["memory"] for each in told),
                        store=size(),
                        rate=rate,
                        p50=p50,
                        p95=p95,
                    )
                    waits, begun = [], time.perf_counter()


async def _show(kind: Kind, messages: int, chats: int) -> list[Sample]:
    print(f"{kind}, {PROCESSES[kind]} processes: {messages:,} messages over {chats:,} chats\n{HEAD}")
    samples = []
    async for sample in soak(kind, messages, chats):
        print(sample, flush=True)
        samples.append(sample)
    print()
    return samples


def main() -> None:
    """Print the samples of the stores that are named, or of both."""
    parser = argparse.ArgumentParser(prog=f"python -m {_MODULE}")
    parser.add_argument("stores", nargs="*", metavar="sqlite|redis")
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--chats", type=int, default=CHATS)
    parser.add_argument("--write", action="store_true", help="keep the figures for docs/performance.md")
    given = parser.parse_args()
    for kind in given.stores or PROCESSES:
        samples = asyncio.run(_show(kind, given.messages, given.chats))
        if given.write:
            figures.keep(f"soak on {kind}", [asdict(sample) for sample in samples])


# -- the gateway's own process ----------------------------------------------------------------


async def _serve(path: str, url: str) -> None:
    config, lines = settings(Path(path), model=ModelSettings(context_length=SMALL_WINDOW)), Lines()
    parts = Parts(store=store_at(url) if url else sqlite(config), providers={"offline": Instant()})
    async with served(build(config, [lines], parts)) as gateway:

        async def figures_now() -> str:
            await quiet(gateway)
            return json.dumps({"sessions": (await gateway.store.status()).sessions, "memory": _resident()})

        lines.asked = figures_now
        await asyncio.Event().wait()


if __name__ == "__main__":
    if sys.argv[1:2] == [_SERVE]:
        collect_seldom()
        log_as_in_production()
        asyncio.run(_serve(*sys.argv[2:]))
    else:
        main()
