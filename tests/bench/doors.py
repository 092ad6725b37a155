"""What the API and the page cost beside JSON lines, and what bad requests to it cost others.

Ten programs hold conversations through each of the two doors in turns, in one process; those of the API send their
whole history each time. Told is the CPU of a message, without that of the programs. Then somebody says something each
twentieth of a second through the API: in calm, beside a thousand bad requests a second (`doors_flood`), and beside as
many to a server that does nothing, which shows what they cost the machine.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from statistics import median
from typing import Final

from adapters.api.adapter import ApiAdapter
from adapters.api.platform import ApiSettings
from gateway.domain.keys import Key
from gateway.people.keys import Keys
from tests.bench.programs import CHATS, Program, Talk, api, lines, page
from tests.bench.start import PROJECT
from tests.bench.table import Row, Rows, milliseconds, percentile
from tests.bench.world import bot, said
from tests.support.hosts import host

TITLE = "The API and the page beside JSON lines, and beside bad requests; model at 0 ms, durable SQLite"
_SPANS: Final = ((5, 25), (25, 65))  # exchanges of history
_TURNS: Final = 5  # of calm, the flood and the flood elsewhere
_SECONDS: Final = 4.0  # of each
_EVERY: Final = 0.05  # seconds between two messages
_FLOOD: Final = "tests.bench.doors_flood"


async def measure() -> Rows:
    """The doors, then the floods."""
    return [*await _page(), *await _doors(stream=False), *await _doors(stream=True), *await _floods()]


async def _doors(*, stream: bool) -> Rows:
    async with lines(stream=stream) as by_lines, api(stream=stream) as by_api:
        turns = [(await _cpu(by_lines), await _cpu(by_api)) for _ in range(_SPANS[-1][1])]
    return [row for first, end in _SPANS for row in _compared(turns[first:end], f"{first} to {end}", stream=stream)]


async def _page() -> Rows:
    """The page, whose answers grow, beside JSON lines in pieces: one person, who looks at both."""
    async with lines(stream=True, chats=1) as by_lines, page(chats=1) as by_page:
        turns = [(await _cpu(by_lines, 1), await _cpu(by_page, 1)) for _ in range(_SPANS[-1][1])]
    told, seen = zip(*turns[_SPANS[0][0] :], strict=True)
    times = median(b / a for a, b in zip(told, seen, strict=True))
    return [Row("over the page: CPU a message", milliseconds(median(seen)), "", times, "that of JSON lines in pieces")]


async def _cpu(talk: Talk, chats: int = CHATS) -> float:
    """CPU seconds of a message."""
    begun = time.process_time()
    theirs = await talk(1)
    return (time.process_time() - begun - theirs) / chats


def _compared(turns: list[tuple[float, float]], history: str, *, stream: bool) -> Iterator[Row]:
    by_lines, by_api = zip(*turns, strict=True)
    how = "in pieces" if stream else "whole"
    times = median(b / a for a, b in turns)
    yield Row(f"JSON lines, {how}, {history} exchanges of history: CPU a message", milliseconds(median(by_lines)))
    yield Row("  over the API", milliseconds(median(by_api)), "", times, "that of JSON lines")


async def _floods() -> Rows:
    adapter = ApiAdapter(ApiSettings(enabled=True, port=0), host())
    async with bot(adapter), _process("nothing") as nothing:
        assert nothing.stdout is not None
        elsewhere = int(await nothing.stdout.readline())
        await adapter.listens.wait()
        assert isinstance(adapter.keys, Keys)
        secret = await adapter.keys.add(Key(name="bench"))
        here = int(adapter.at.rpartition(":")[2])
        found: dict[int | None, list[tuple[float, float, float]]] = {None: [], here: [], elsewhere: []}
        for _ in range(_TURNS):
            for port, turns in found.items():
                turns.append(await _turn(adapter.at, secret, port))
    calm = median(p95 for p95, _, _ in found[None])
    cost = median(
        (cpu - calm_cpu) / rate for (_, cpu, rate), (_, calm_cpu, _) in zip(found[here], found[None], strict=True)
    )
    rows = [Row(f"a message each {_EVERY * 1_000:.0f} ms, calm: p95", milliseconds(calm))]
    for what, port in (("1,000 bad requests a second", here), ("as many at a server that does nothing", elsewhere)):
        more = [p95 - quiet for (p95, _, _), (quiet, _, _) in zip(found[port], found[None], strict=True)]
        told = f"{min(more) * 1_000:+.0f} to {max(more) * 1_000:+.0f} ms"
        rows.append(Row(f"  beside {what}: more", milliseconds(median(more)), told))
    return [*rows, Row("CPU a bad request", f"{cost * 1e6:.0f} µs")]


async def _turn(at: str, secret: str, port: int | None) -> tuple[float, float, float]:
    """p95 of the person's waits; CPU of this process, and bad requests, a second."""
    if port is None:
        return *await _waits(at, secret), 0.0
    async with _process() as flood:
        assert flood.stdin is not None
        flood.stdin.write(f"{port} {secret}\n".encode())
        begun = time.perf_counter()
        p95, cpu = await _waits(at, secret)
        told, _ = await flood.communicate(b"")
        return p95, cpu, json.loads(told)["sent"] / (time.perf_counter() - begun)


async def _waits(at: str, secret: str) -> tuple[float, float]:
    def speak() -> list[float]:
        program, waits = Program(at, secret, "c"), []
        for number in range(round(_SECONDS / _EVERY)):
            begun = time.perf_counter()
            program.ask(said(number))
            program.hear()
            waits.append(time.perf_counter() - begun)
            time.sleep(max(0.0, _EVERY - waits[-1]))
        program.close()
        return waits

    begun, cpu = time.perf_counter(), time.process_time()
    waits = await asyncio.to_thread(speak)
    return percentile(waits, 0.95), (time.process_time() - cpu) / (time.perf_counter() - begun)


@asynccontextmanager
async def _process(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", _FLOOD, *words, cwd=PROJECT, stdin=pipe, stdout=pipe
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
