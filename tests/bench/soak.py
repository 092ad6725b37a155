"""What a long time does to one process: 100,000 messages over 1,000 chats, whose small windows are compacted again and
again. The model takes no time; the store is a SQLite file or a Redis server. A row is a twentieth of the messages.

    python -m tests.bench.soak                     both stores, about four minutes each
    python -m tests.bench.soak --messages 6000 --chats 100 sqlite
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, Literal

from gateway.app.gateway import Gateway
from gateway.providers.plugin import ModelSettings
from gateway.runtime.heap import collect_seldom
from tests.bench.served import store_at, synced_server
from tests.bench.table import percentile
from tests.bench.world import Chats, Instant, log_as_in_production, quiet, running, settings
from tests.support.redis_server import RedisServer

MESSAGES: Final = 100_000
CHATS: Final = 1_000
ROWS: Final = 20
_AT_ONCE: Final = 100  # chats that talk at the same time
_WINDOW: Final = 8_000  # tokens: some sixty exchanges fill it
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")

Kind = Literal["sqlite", "redis"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """After so many `messages` and compactions: resident memory and the store (SQLite's files, the Redis server's
    memory) in MB, and of the messages since the sample before the rate a second and the wait in seconds (p50, p95)."""

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


@asynccontextmanager
async def _world(kind: Kind, folder: Path) -> AsyncIterator[tuple[Gateway, Chats, Callable[[], float]]]:
    config = settings(folder / "soak.db", model=ModelSettings(context_length=_WINDOW))
    if kind == "sqlite":
        async with running(config, provider=Instant()) as (gateway, chats):
            yield gateway, chats, partial(_size, folder)
    else:
        with synced_server() as server:
            async with running(config, store=store_at(server.url), provider=Instant()) as (gateway, chats):
                yield gateway, chats, partial(_used, server)


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
        async with _world(kind, Path(folder)) as (gateway, people, size):
            done, waits, begun = 0, list[float](), time.perf_counter()
            for names, each in _groups(messages, chats):
                waits += await people.talk_all(names, each)
                done += each * len(names)
                if len(waits) >= messages // ROWS or done >= messages:
                    await quiet(gateway)
                    rate = len(waits) / (time.perf_counter() - begun)
                    p50, p95 = percentile(waits, 0.5), percentile(waits, 0.95)
                    yield Sample(
                        messages=done,
                        compactions=(await gateway.store.status()).sessions - min(chats, done // 4),
                        memory=_resident(),
                        store=size(),
                        rate=rate,
                        p50=p50,
                        p95=p95,
                    )
                    waits, begun = [], time.perf_counter()


async def _show(kind: Kind, messages: int, chats: int) -> None:
    print(f"{kind}: {messages:,} messages over {chats:,} chats\n{HEAD}")
    async for sample in soak(kind, messages, chats):
        print(sample, flush=True)
    print(f"peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000:.0f} MB\n")


def main() -> None:
    """Print the samples of the stores that are named, or of both."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak")
    parser.add_argument("stores", nargs="*", metavar="sqlite|redis")
    parser.add_argument("--messages", type=int, default=MESSAGES)
    parser.add_argument("--chats", type=int, default=CHATS)
    given = parser.parse_args()
    collect_seldom()
    log_as_in_production()
    for kind in given.stores or ("sqlite", "redis"):
        asyncio.run(_show(kind, given.messages, given.chats))


if __name__ == "__main__":
    main()
