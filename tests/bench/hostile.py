"""The effect of hostile people on others: a bot on Telegram, without Telegram's limits, with a model that takes no
time.

Twenty people each say the next thing when the last was answered. Beside them ten members of a group mention the bot a
thousand times a second, or 256 strangers' connections lean on the webhook. Telegram, its people and the members are a
process of their own (`hostile_people`), and so are the strangers (`hostile_strangers`), for they must cost the gateway
something and not Telegram. What they cost is told as the gateway's CPU, too, while nobody else writes: a busy machine
changes that less.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import median
from typing import Any, Final

from adapters.telegram.adapter import TelegramAdapter, TelegramBot
from adapters.telegram.webhook import WebhookAdapter
from gateway.app.build import Parts, build
from gateway.app.config.models import Access
from gateway.runtime.clock import SystemClock
from gateway.runtime.tasks import Background
from tests.bench.hostile_people import MEMBERS, PEOPLE
from tests.bench.hostile_strangers import CONNECTIONS
from tests.bench.start import PROJECT
from tests.bench.table import Row, Rows, milliseconds, percentile
from tests.bench.telegram import People, platform
from tests.bench.world import Instant, settings
from tests.support.redis_server import free_port

TITLE = "A bot among those who mean harm; model at 0 ms, durable SQLite, Telegram in a process of its own"
SECONDS: Final = 60  # of the flood
_CALM: Final = 12  # seconds of each of the others
_PAIRS: Final = 5  # of calm and strangers: by themselves two calm rounds differ by tens of milliseconds
RATE: Final = 1_000  # messages a second
_ALONE: Final = 10  # seconds of strangers and nobody else


async def measure() -> Rows:
    """The flood in a group, then the strangers at the webhook."""
    port = free_port()
    async with platform("tests.bench.hostile_people") as people, _bot(people, None):
        calm, flood = await _round(people, f"calm {_CALM}"), await _round(people, f"flood {SECONDS} {RATE}")
    async with platform("tests.bench.hostile_people") as people, _bot(people, port):
        called, leant = list[float](), list[float]()
        for _ in range(_PAIRS):
            called.append(percentile((await _round(people, f"calm {_CALM}"))["waits"], 0.95))
            async with _strangers(port):
                leant.append(percentile((await _round(people, f"calm {_CALM}"))["waits"], 0.95))
        each, rate = await _cost(port)
    more = median(leaning - calling for calling, leaning in zip(called, leant, strict=True))
    crowd = f"{flood['written'] / SECONDS:,.0f} messages a second of {MEMBERS} members"
    return [
        Row(f"{PEOPLE} people, polling, calm: p95", milliseconds(percentile(calm["waits"], 0.95))),
        Row(f"beside {crowd}: p95", milliseconds(percentile(flood["waits"], 0.95)), "goal ≤ 2 s"),
        Row("the same: longest", milliseconds(max(flood["waits"]))),
        Row(f"{PEOPLE} people, webhook, calm: p95", milliseconds(median(called))),
        Row(
            f"beside {CONNECTIONS} strangers' connections: p95 more",
            milliseconds(more),
            f"goal < 50 ms; median of {_PAIRS}",
        ),
        Row("CPU a stranger's connection", f"{each * 1e6:.0f} µs", f"{rate:,.0f} connections a second"),
    ]


async def _round(people: People, order: str) -> dict[str, Any]:
    assert people.process.stdin is not None
    people.process.stdin.write(f"{order}\n".encode())
    return await people.read()


async def _cost(port: int) -> tuple[float, float]:
    """CPU seconds of this process for one stranger's connection, and how many there are a second."""
    cpu, begun = time.process_time(), time.perf_counter()
    async with _strangers(port) as opened:
        await asyncio.sleep(_ALONE)
    (count,) = opened
    return (time.process_time() - cpu) / count, count / (time.perf_counter() - begun)


@asynccontextmanager
async def _strangers(port: int) -> AsyncIterator[list[int]]:
    """Strangers until the block ends; then the list holds how many connections they opened."""
    pipe = asyncio.subprocess.PIPE
    module = ("-m", "tests.bench.hostile_strangers", str(port))
    process = await asyncio.create_subprocess_exec(sys.executable, *module, cwd=PROJECT, stdin=pipe, stdout=pipe)
    opened: list[int] = []
    try:
        yield opened
        told, _ = await process.communicate(b"")
        opened.append(int(told))
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def _bot(people: People, port: int | None) -> AsyncIterator[None]:
    """A gateway with the bot, polling or called on a port."""
    with tempfile.TemporaryDirectory() as folder:
        config = settings(Path(folder, "bench.db")).model_copy(update={"access": Access(allow=("telegram:*",))})
        how: dict[str, Any] = {"clock": SystemClock(), "base_url": people.base_url, "paced": False}
        adapter: TelegramBot = TelegramAdapter(people.token, **how)
        if port is not None:
            url = f"http://127.0.0.1:{port}/hook"
            adapter = WebhookAdapter(people.token, public_url=url, host="127.0.0.1", port=port, **how)
        gateway = build(config, [adapter], Parts(providers={"offline": Instant()}))

        async def run() -> None:
            await gateway.run()

        task = Background().start(run(), name="gateway")
        try:
            yield
        finally:
            gateway.stop()
            await task
