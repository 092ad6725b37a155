"""The cost of tool calls beside the tools and the model, and the stall that a long result causes.

A stall is the longest time that one callback kept the event loop, in time of its thread: what other programs take of
the core is not counted.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from gateway.agent.tools.base import ToolContext
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec
from tests.bench.table import Row, Rows
from tests.bench.world import Instant, quiet, running, settings

TITLE = "Tool calls, in time of the processor; model and tools at 0 ms, durable SQLite"
CALLS = 10
TURNS = 30
LONG = 2_000_000  # characters
_LINE = "2026-11-22 INFO nothing of interest happened in /var/log/app.log\n"


class Look:
    """A tool that only looks, at something of a given length."""

    name = "look"
    description = "Looks at something."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {"at": {"type": "string"}}}
    read_only = True
    idempotent = True
    timeout = 5.0

    def __init__(self, seen: str) -> None:
        self.seen = seen

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Return the words of a look."""
        return self.seen


class OneByOne(Instant):
    """A model that calls one tool a step."""

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """A call, until there were enough since the person's words; then the text."""
        roles = [message["role"] for message in request.messages]
        if roles[::-1].index("user") < 2 * CALLS:
            yield Completed(text="", tool_calls=(self._call(("look", '{"at": "it"}')),), stop="tool_calls")
            return
        async for event in super().stream(spec, request):
            yield event


async def measure() -> Rows:
    """Three lines of turns, and two of stalls."""
    plain = await _turn(Instant())
    at_once = await _turn(Instant([("look", '{"at": "it"}')] * CALLS))
    one_by_one = await _turn(OneByOne())
    short, long = await _stall("seen"), await _stall(_LINE * (LONG // len(_LINE)))
    without = "a turn without calls"
    return [
        Row(without, f"{plain:.1f} ms"),
        Row(f"{CALLS} calls in one step", f"{at_once:.1f} ms", "", at_once / plain, without),
        Row(f"{CALLS} steps of one call", f"{one_by_one:.1f} ms", "", one_by_one / plain, without),
        Row("short tool result: longest stall of the loop", f"{short:.1f} ms"),
        Row("2 MB tool result: longest stall of the loop", f"{long:.1f} ms", "", long / short, "a short result's"),
    ]


async def _turn(model: Instant) -> float:
    """The milliseconds of the processor that a turn takes, in all threads."""
    with tempfile.TemporaryDirectory() as folder:
        async with running(settings(Path(folder, "bench.db")), provider=model, tools=[Look("seen")]) as (_, chats):
            await chats.talk("a", 3)
            start = time.process_time()
            await chats.talk("a", TURNS)
            return 1e3 * (time.process_time() - start) / TURNS


async def _stall(seen: str) -> float:
    """The milliseconds of the longest callback while such results come."""
    with tempfile.TemporaryDirectory() as folder:
        config = settings(Path(folder, "bench.db"))
        async with running(config, provider=Instant([("look", "{}")]), tools=[Look(seen)]) as (gateway, chats):
            await chats.talk("a", 3)
            with _timed() as stalls:
                await chats.talk("a", 10)
            await quiet(gateway)
            return 1e3 * max(stalls)


@contextmanager
def _timed() -> Iterator[list[float]]:
    run: Any = asyncio.Handle._run
    stalls = [0.0]

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        stalls.append(time.thread_time() - began)

    with patch.object(asyncio.Handle, "_run", timed):
        yield stalls
