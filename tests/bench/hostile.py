"""The effect of hostile people on others: a bot on Telegram, without Telegram's limits, with a model that takes no
time.

Twenty people each say the next thing when the last was answered, and ten members of a group beside them mention the
bot a thousand times a second. Then twenty people say something each second, and 256 strangers' connections lean on the
webhook. Telegram, its people and the members are a process of their own (`hostile_people`), and so are the strangers
(`hostile_strangers`). The gateway has a core for itself where there are two: the others' work must not look like its
own. What is left of that shows where the strangers lean on a port that is not the gateway's. Rounds take turns, and
each is compared with the calm one before it, because by themselves two calm rounds differ. What strangers cost is told
as the gateway's CPU, too, during each call and while nobody else writes: a busy machine changes that less.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, Literal

from pydantic import SecretStr

from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.platform import TelegramSettings, Webhook
from adapters.telegram.webhook import WebhookAdapter
from gateway.runtime.clock import SystemClock
from tests.bench.hostile_people import MEMBERS, PEOPLE
from tests.bench.hostile_strangers import CONNECTIONS
from tests.bench.start import PROJECT
from tests.bench.table import Row, Rows, milliseconds, percentile
from tests.bench.telegram import People, platform
from tests.bench.world import bot
from tests.support.redis_server import free_port

TITLE = "A bot among those who mean harm; model at 0 ms, durable SQLite, Telegram in a process of its own"
SECONDS: Final = 20  # of the flood
_CALM: Final = 6  # seconds of each of the others
_TURNS: Final = 5  # of calm, strangers and strangers elsewhere
RATE: Final = 1_000  # messages a second
_STEADY: Final = 20  # messages a second of the people beside strangers
_ALONE: Final = 5  # seconds of strangers and nobody else

Figure = Literal["work", "calls", "waits"]


async def measure() -> Rows:
    """The flood in a group, then the strangers at the webhook."""
    with _core_of_its_own() as others:
        async with _people(others) as people, _bot(people, None):
            calm, flood = await _round(people, f"calm {_CALM}"), await _round(people, f"flood {SECONDS} {RATE}")
        port = free_port()
        async with _people(others) as people, _bot(people, port):
            await _round(people, f"steady {_CALM} {_STEADY}")
            turns = [await _turn(people, port, others) for _ in range(_TURNS)]
            each, rate = await _cost(port, others)
    crowd = f"{flood['written'] / SECONDS:,.0f} messages a second of {MEMBERS} members"
    quiet, loud = (percentile(told["waits"], 0.95) for told in (calm, flood))
    return [
        Row(f"{PEOPLE} people, polling, calm: p95", milliseconds(quiet)),
        Row(f"beside {crowd}: p95", milliseconds(loud), "", loud / quiet, "that in calm"),
        Row("the same: longest", milliseconds(max(flood["waits"]))),
        *_compared(turns),
        Row("CPU a stranger's connection", f"{each * 1e6:.0f} µs", f"{rate:,.0f} connections a second"),
    ]


@dataclass(frozen=True, slots=True)
class _Turn:
    """The figures of the people in calm, beside strangers, and beside strangers who lean on another port."""

    calm: dict[str, Any]
    leaning: dict[str, Any]
    elsewhere: dict[str, Any]

    def more(self, figure: Figure) -> tuple[float, float]:
        """By how many seconds p95 rises beside strangers, and beside strangers elsewhere."""
        calm, leaning, elsewhere = (
            percentile(told[figure], 0.95) for told in (self.calm, self.leaning, self.elsewhere)
        )
        return leaning - calm, elsewhere - calm


async def _turn(people: People, port: int, others: frozenset[int]) -> _Turn:
    order = f"steady {_CALM} {_STEADY}"
    calm = await _round(people, order)
    async with _strangers(port, others):
        leaning = await _round(people, order)
    async with _strangers(None, others):
        elsewhere = await _round(people, order)
    return _Turn(calm, leaning, elsewhere)


def _compared(turns: Sequence[_Turn]) -> Iterator[Row]:
    yield Row(f"{_STEADY} messages a second by webhook; {CONNECTIONS} strangers' connections", "")
    names: dict[Figure, str] = {"work": "work of the gateway during a call", "calls": "a call", "waits": "an answer"}
    for figure, what in names.items():
        calm = median(percentile(turn.calm[figure], 0.95) for turn in turns)
        leaning, elsewhere = zip(*(turn.more(figure) for turn in turns), strict=True)
        yield Row(f"{what}, calm: p95", milliseconds(calm))
        yield Row("  beside strangers: more", _spread(leaning))
        yield Row("  beside strangers at another port: more", _spread(elsewhere), "what they cost the machine")


def _spread(seconds: Sequence[float]) -> str:
    """The median and the ends of a few figures, in milliseconds."""
    low, middle, high = (1_000 * each for each in (min(seconds), median(seconds), max(seconds)))
    return f"{middle:+.1f} ms ({low:+.0f} to {high:+.0f})"


@contextmanager
def _core_of_its_own() -> Iterator[frozenset[int]]:
    """Keep this process to one core, if there is another one. Gives those on which the others are to run."""
    if not hasattr(os, "sched_setaffinity") or len(all_of_them := os.sched_getaffinity(0)) < 2:
        yield frozenset()
        return
    own = max(all_of_them)
    os.sched_setaffinity(0, {own})
    try:
        yield frozenset(all_of_them - {own})
    finally:
        os.sched_setaffinity(0, all_of_them)


def _move(process: asyncio.subprocess.Process, cores: frozenset[int]) -> None:
    if cores:
        os.sched_setaffinity(process.pid, cores)


@asynccontextmanager
async def _people(others: frozenset[int]) -> AsyncIterator[People]:
    async with platform("tests.bench.hostile_people") as people:
        _move(people.process, others)
        yield people


async def _round(people: People, order: str) -> dict[str, Any]:
    assert people.process.stdin is not None
    people.process.stdin.write(f"{order}\n".encode())
    return await people.read()


async def _cost(port: int, others: frozenset[int]) -> tuple[float, float]:
    """CPU seconds of this process for one stranger's connection, and how many there are a second."""
    cpu, begun = time.process_time(), time.perf_counter()
    async with _strangers(port, others) as opened:
        await asyncio.sleep(_ALONE)
    (count,) = opened
    return (time.process_time() - cpu) / count, count / (time.perf_counter() - begun)


@asynccontextmanager
async def _strangers(port: int | None, others: frozenset[int]) -> AsyncIterator[list[int]]:
    """Strangers until the block ends; then the list holds how many connections they opened. None: at another port."""
    pipe = asyncio.subprocess.PIPE
    module = ("-m", "tests.bench.hostile_strangers", *([] if port is None else [str(port)]))
    process = await asyncio.create_subprocess_exec(sys.executable, *module, cwd=PROJECT, stdin=pipe, stdout=pipe)
    _move(process, others)
    opened: list[int] = []
    try:
        yield opened
        told, _ = await process.communicate(b"")
        opened.append(json.loads(told)["opened"])
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def _bot(people: People, port: int | None) -> AsyncIterator[None]:
    """A gateway with the bot, polling or called on a port."""
    webhook = Webhook(url=f"http://127.0.0.1:{port}/hook", port=port) if port else Webhook()
    settings = TelegramSettings(token=SecretStr(people.token), base_url=people.base_url, webhook=webhook)
    kind = TelegramAdapter if port is None else WebhookAdapter
    adapter: TelegramAdapter | WebhookAdapter = kind(settings, clock=SystemClock(), paced=False)
    async with bot(adapter):
        yield
