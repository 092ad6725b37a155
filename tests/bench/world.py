"""A gateway to measure: built by `bootstrap.build`, with chats that answer at once.

`Chats` is the platform: each chat says its next thing the moment it was handed the reply to the
last one. `Instant` is a model that takes no time. The store is the one that is given, else a real
SQLite file, synced on every commit.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog

from gateway.agent.tools.base import Tool, ToolContext
from gateway.app.build import Parts, build
from gateway.app.config import Config
from gateway.app.config.models import StoreSettings
from gateway.app.gateway import Gateway
from gateway.context.policy import HygieneRules
from gateway.domain.adapter import Accept, Adapter, Limits
from gateway.domain.chat import Inbound, Outbound, Source
from gateway.domain.message import ToolCall
from gateway.domain.turn import TurnSettings
from gateway.domain.usage import CanonicalUsage
from gateway.people.access import AccessSettings
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, Provider, TextDelta
from gateway.providers.plugin import ModelSettings as Model
from gateway.runtime.clock import SystemClock
from gateway.runtime.tasks import Background
from gateway.runtime.tokens import ROUGH_SHARE, TokenCounter
from gateway.store.port import Store
from gateway.store.sqlite.backend import SqliteStore

REPLY = "Certainly: here is an answer of a quite usual length, in one or two sentences."
_CLOCK = SystemClock()
WINDOW = 10_000_000  # tokens: nothing here is meant to be compacted unless a bench asks for it
SMALL_WINDOW = 8_000  # tokens, for a bench that asks: some sixty exchanges fill it


def log_as_in_production() -> None:
    """Warnings alone, and beside the figures, which another process may read."""
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def said(number: int) -> str:
    """Return a person's words; never the same twice."""
    return f"Message number {number}: could you tell me a little more about that, please?"


class Chats:
    """An adapter whose chats each say `messages` things, one after the other's reply."""

    name = "bench"
    limits = Limits(trusted=True)

    def __init__(self) -> None:
        self._accept: asyncio.Future[Accept] = asyncio.get_running_loop().create_future()
        self._waiting: dict[str, asyncio.Future[float]] = {}
        self._said = 0

    async def run(self, accept: Accept) -> None:
        """Lend `accept` to `talk` until cancelled."""
        self._accept.set_result(accept)
        await asyncio.Event().wait()

    async def send(self, outbound: Outbound) -> str:
        """A reply is handed over: its chat may go on. A chat that was told of an error does not, or errors would be
        measured."""
        waiting = self._waiting.get(outbound.to.chat)
        if waiting is not None and not waiting.done():
            if outbound.kind == "error":
                waiting.set_exception(AssertionError(outbound.text))
            else:
                waiting.set_result(time.perf_counter())
        return "1"

    async def aclose(self) -> None:
        """Nothing is open."""

    async def ready(self) -> None:
        """Return when somebody listens."""
        await asyncio.shield(self._accept)

    async def say(self, chat: str, text: str) -> float:
        """Seconds from handing a message to `accept` until its reply is handed over."""
        accept = await asyncio.shield(self._accept)
        self._said += 1
        source = Source(platform=self.name, chat=chat, chat_type="direct", user=chat)
        handed = self._waiting[chat] = asyncio.get_running_loop().create_future()
        start = time.perf_counter()
        await accept([Inbound(event_id=f"{chat}-{self._said}-{start}", source=source, text=text)])
        return await handed - start

    async def talk(self, chat: str, messages: int, text: str = "") -> list[float]:
        """The seconds of each of `messages` exchanges; `text`: what is said each time."""
        return [await self.say(chat, text or said(number)) for number in range(messages)]

    async def talk_all(self, chats: Sequence[str], messages: int) -> list[float]:
        """The same for many chats at once."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self.talk(chat, messages)) for chat in chats]
        return [seconds for task in tasks for seconds in task.result()]


class Instant:
    """A `Provider` that answers at once, or after `seconds`. `calls` are tool calls it makes before the
    text of each turn; `sent` adds up the seconds that `weigh`, if given, takes to look at each request."""

    name = "offline"

    def __init__(
        self,
        calls: Sequence[tuple[str, str]] = (),
        *,
        weigh: Callable[[ModelSpec, ModelRequest], Any] | None = None,
        seconds: float = 0.0,
    ) -> None:
        self._calls = calls
        self._seconds = seconds
        self.weigh = weigh
        self._number = 0
        self.sent = 0.0

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Two deltas and the end; usage as a real provider reports it, though not truly counted."""
        if self.weigh is not None:
            start = time.process_time()
            self.weigh(spec, request)
            self.sent += time.process_time() - start
        if self._seconds:
            await _CLOCK.sleep(self._seconds)
        usage = CanonicalUsage(input_tokens=600 + 40 * len(request.messages), output_tokens=20)
        if self._calls and request.messages[-1]["role"] == "user":
            yield Completed(text="", tool_calls=tuple(map(self._call, self._calls)), stop="tool_calls", usage=usage)
            return
        yield TextDelta(text=REPLY[:40])
        yield TextDelta(text=REPLY[40:])
        yield Completed(text=REPLY, usage=usage)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _call(self, call: tuple[str, str]) -> ToolCall:
        self._number += 1
        name, arguments = call
        return {"id": f"call_{self._number}", "type": "function", "function": {"name": name, "arguments": arguments}}


class Stamp:
    """A tool whose effect must not be repeated."""

    name = "stamp"
    description = "Stamps a paper."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
    read_only = False
    idempotent = False
    timeout = 5.0

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Always works."""
        return "stamped"


def settings(
    path: Path, model: Model | None = None, hygiene: HygieneRules | None = None, concurrent: int | None = None
) -> Config:
    """The defaults of an empty configuration, with a window that is never full."""
    return Config(
        turns=TurnSettings() if concurrent is None else TurnSettings(concurrent=concurrent),
        model=model or Model(context_length=WINDOW),
        hygiene=hygiene or HygieneRules(),
        store=StoreSettings(url=f"sqlite:///{path}"),
    )


def sqlite(config: Config) -> SqliteStore:
    """The configured store, for who looks into it."""
    path = config.store.sqlite_path
    assert path is not None
    return SqliteStore(path, clock=_CLOCK, concurrency=config.turns.concurrent)


@asynccontextmanager
async def running(
    config: Config, *, store: Store | None = None, provider: Provider | None = None, tools: Sequence[Tool] = ()
) -> AsyncIterator[tuple[Gateway, Chats]]:
    """A running gateway, which counts tokens as `legato run` does, and its platform. `store` and `provider` None: the
    configured ones."""
    chats = Chats()
    providers = None if provider is None else {"offline": provider}
    counter = TokenCounter(roughly=ROUGH_SHARE)
    parts = Parts(store=store or sqlite(config), providers=providers, tools=tools, counter=counter)
    async with served(build(config, [chats], parts)) as gateway:
        yield gateway, chats


@asynccontextmanager
async def bot(adapter: Adapter, provider: Provider | None = None, *, window: int = WINDOW) -> AsyncIterator[Gateway]:
    """A running gateway with a bot that answers everybody; at once, if no other `provider` does. `window`: of the
    model, in tokens."""
    with tempfile.TemporaryDirectory() as folder:
        access = AccessSettings(allow=(f"{adapter.name}:*",))
        config = settings(Path(folder, "bench.db"), Model(context_length=window)).model_copy(update={"access": access})
        async with served(build(config, [adapter], Parts(providers={"offline": provider or Instant()}))) as gateway:
            yield gateway


@asynccontextmanager
async def served(gateway: Gateway) -> AsyncIterator[Gateway]:
    """The gateway runs until the block ends."""

    async def run() -> None:
        await gateway.run()

    task = Background().start(run(), name="gateway")
    try:
        yield gateway
    finally:
        gateway.stop()
        await task


async def quiet(gateway: Gateway) -> None:
    """Return when every reply is marked as handed over."""
    while gateway.outbox.in_flight or gateway.lanes.active:
        await _CLOCK.sleep(0.001)
