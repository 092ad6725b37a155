"""A whole gateway in the test's own process: a fake platform, a scripted model, a recording engine.

async with running(tmp_path, model=Model(says("hi"))) as live:
    assert await live.ask("hello") == "hi"
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gateway import bootstrap
from gateway.adapter import Accept, Accepted, Limits
from gateway.app import Gateway
from gateway.clock import Clock, SystemClock, SystemIds
from gateway.config import Config
from gateway.config.models import Model as ModelEntry
from gateway.config.models import Store as StoreEntry
from gateway.context.engine import ContextEngine, Outcome
from gateway.domain.chat import ChatType, Inbound, Outbound, Source
from gateway.domain.message import Message, ToolCall, text_of, user
from gateway.domain.session import Session
from gateway.domain.usage import CanonicalUsage
from gateway.providers.base import Completed, ModelEvent, ModelRequest, ModelSpec, TextDelta
from gateway.providers.offline import is_summary_request
from gateway.store.base import Store
from gateway.store.sqlite.store import SqliteStore
from gateway.telemetry.points import Point, Points, ignore_points
from gateway.tools.base import Tool
from tests.fakes import ManualClock

PATIENCE = 20.0  # seconds until a test that hangs is failed rather than waited for


class Changing:
    """Something a test can wait for."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def changed(self) -> None:
        """Let everybody who waits look again."""
        self._changed.set()

    async def until(self, condition: Callable[[], Any]) -> None:
        """Return once `condition` holds. Fails after `PATIENCE`."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


class FakeAdapter(Changing):
    """A platform made of lists. `sent` is everything people were shown, in order."""

    def __init__(self, name: str = "fake", limits: Limits | None = None) -> None:
        super().__init__()
        self.name = name
        self.limits = limits or Limits(trusted=True)
        self.sent: list[Outbound] = []
        self.failures: list[Exception] = []  # raised by the next sends, one each
        self._accept: Accept | None = None
        self._ended = asyncio.Event()
        self._ids = SystemIds()  # an event of one run must not look like one of another

    async def run(self, accept: Accept) -> None:
        """Offer `accept` to the test until the test ends the input."""
        self._accept = accept
        self.changed()
        await self._ended.wait()

    async def send(self, outbound: Outbound) -> str:
        """Show a message, or fail as told."""
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append(outbound)
        self.changed()
        return f"m-{outbound.id}"

    async def aclose(self) -> None:
        self._ended.set()

    def end(self) -> None:
        """The platform has nothing more to say."""
        self._ended.set()

    async def receive(self, *inbounds: Inbound) -> Sequence[Accepted]:
        """Hand a batch over as the real ones do."""
        await self.until(lambda: self._accept is not None)
        assert self._accept is not None
        return await self._accept(inbounds)

    def inbound(self, text: str, *, chat: str = "c", user: str = "u", event: str = "", **more: Any) -> Inbound:
        """A direct message unless `chat_type` says otherwise; every one with an id of its own."""
        chat_type: ChatType = more.pop("chat_type", "direct")
        source = Source(platform=self.name, chat=chat, chat_type=chat_type, user=user, **more)
        return Inbound(event_id=event or self._ids.new("e"), source=source, text=text)

    def answer_to(self, event_id: str) -> Outbound | None:
        """The reply, command answer or error that an event got."""
        return next((row for row in self.sent if row.answers == event_id and row.kind != "notice"), None)

    def shown(self, chat: str = "c", *kinds: str) -> list[str]:
        """The texts shown in a chat, of these kinds (none given: all)."""
        return [row.text for row in self.sent if row.to.chat == chat and (not kinds or row.kind in kinds)]


class Gate(Changing):
    """A place where a model waits until the test opens it. `waiting`: how many are there now."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0
        self._open = asyncio.Event()

    async def pass_through(self) -> None:
        """Wait here."""
        self.waiting += 1
        self.changed()
        try:
            await self._open.wait()
        finally:
            self.waiting -= 1
            self.changed()

    def open(self) -> None:
        """Let everybody through from now on."""
        self._open.set()

    async def until_waiting(self, count: int = 1) -> None:
        """Return once that many wait."""
        await self.until(lambda: self.waiting >= count)


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """One answer of the scripted model. `first` is streamed before `gate` is waited at; `error` is
    raised after that. `prompt`: reported prompt tokens (0: counted by the fake; None: no report)."""

    text: str = ""
    calls: Sequence[tuple[str, str]] = ()  # (tool, arguments as JSON)
    first: str = ""
    gate: Gate | None = None
    error: Exception | None = None
    prompt: int | None = 0


Script = Callable[[ModelSpec, ModelRequest], Say]


def newest(request: ModelRequest) -> str:
    """The newest words of a person in a request."""
    return next(text_of(message) for message in reversed(request.messages) if message["role"] == "user")


def echo(spec: ModelSpec, request: ModelRequest) -> Say:
    """Say what was said."""
    return Say(text=f"echo: {newest(request)}")


def in_turn(*answers: Say | Exception, then: Script = echo) -> Script:
    """Answers one after the other (summaries not counted), then those of `then`."""
    left = list(answers)

    def script(spec: ModelSpec, request: ModelRequest) -> Say:
        if not left:
            return then(spec, request)
        answer = left.pop(0)
        return answer if isinstance(answer, Say) else Say(error=answer)

    return script


def summary_text(spec: ModelSpec, request: ModelRequest) -> Say:
    """Notes that pass for a summary."""
    return Say(text="## Active Task\nNone\n## Goal\nTalk to the person.\n## Critical Context\nThey greeted the bot.")


class FakeModel(Changing):
    """A `Provider` that follows scripts: `script` for turns, `summary` for summaries."""

    name = "offline"

    def __init__(self, script: Script = echo, *, summary: Script = summary_text) -> None:
        super().__init__()
        self.script = script
        self.summary = summary
        self.requests: list[ModelRequest] = []  # of turns, with the messages as they were then
        self.specs: list[ModelSpec] = []
        self.summaries = 0
        self.closed_early = 0
        self._calls = itertools.count(1)

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer by the script."""
        if is_summary_request(request.messages):
            self.summaries += 1
            answer = self.summary(spec, request)
        else:
            self.requests.append(replace(request, messages=[*request.messages]))
            self.specs.append(spec)
            answer = self.script(spec, request)
        self.changed()
        if answer.first:
            yield TextDelta(text=answer.first)
        if answer.gate is not None:
            try:
                await answer.gate.pass_through()
            except asyncio.CancelledError:
                self.closed_early += 1
                raise
        if answer.error is not None:
            raise answer.error
        if answer.text:
            yield TextDelta(text=answer.text)
        calls: tuple[ToolCall, ...] = tuple(
            {"id": f"call-{next(self._calls)}", "type": "function", "function": {"name": name, "arguments": arguments}}
            for name, arguments in answer.calls
        )
        usage = None
        if answer.prompt is not None:
            counted = sum(len(text_of(message)) for message in request.messages) // 4 + 1
            usage = CanonicalUsage(input_tokens=answer.prompt or counted, output_tokens=3)
        yield Completed(text=answer.first + answer.text, tool_calls=calls, usage=usage)

    async def aclose(self) -> None:
        """Nothing is open."""

    def spoken(self, index: int = -1) -> list[tuple[str, str]]:
        """A request's messages as (role, text), the system prompt left out."""
        messages = self.requests[index].messages
        return [(message["role"], text_of(message)) for message in messages if message["role"] != "system"]


class RecordingEngine(ContextEngine):
    """Writes down what it is told, in one list for all instances; compacts when `due` says so."""

    name = "recording"

    def __init__(self, heard: list[tuple[Any, ...]], *, limit: int = 10**9) -> None:
        self.heard = heard
        self.limit = limit  # prompt tokens from which it wants to compact
        self.context_length = 0

    def update_from_response(self, usage: Mapping[str, int]) -> None:
        self.last_prompt_tokens = usage["prompt_tokens"]

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return (prompt_tokens or 0) >= self.limit

    def compress(
        self, messages: Sequence[Message], current_tokens: int | None = None, focus_topic: str | None = None
    ) -> list[Message]:
        self.heard.append(("compress", len(messages), focus_topic))
        self.compression_count += 1
        self.last_outcome = Outcome()
        return [user("notes on what was said", summary=True), *messages[-1:]]

    def on_session_start(self, session_id: str, **info: Any) -> None:
        self.heard.append(("start", session_id, info["parent_session_id"], info["reason"]))

    def on_session_end(self, session_id: str, messages: Sequence[Message]) -> None:
        self.heard.append(("end", session_id, [text_of(message) for message in messages]))

    def on_session_reset(self) -> None:
        super().on_session_reset()
        self.heard.append(("reset",))


class Killed(BaseException):
    """The process dies here: nothing in the gateway catches it."""


class KillAt:
    """`Points` that kill whoever passes `point` for the `nth` time (0: once `arm` was called)."""

    def __init__(self, point: Point, nth: int = 1) -> None:
        self.left = nth
        self.point = point
        self.passed = asyncio.Event()

    def arm(self, nth: int = 1) -> None:
        """Kill at the `nth` passing from now on."""
        self.left = nth

    def __call__(self, point: Point, /) -> None:
        """Pass, or die."""
        if point == self.point:
            self.left -= 1
            if self.left == 0:
                self.passed.set()
                raise Killed


class MortalStore(SqliteStore):
    """A store that nobody reaches any more once `kill` has struck: what was stored until then is what
    the next process finds, whatever the dying one still tries."""

    kill: KillAt | None = None

    def __getattribute__(self, name: str) -> Any:
        kill = object.__getattribute__(self, "kill")
        if name in _STEPS and kill is not None and kill.passed.is_set():
            raise Killed
        return object.__getattribute__(self, name)


_STEPS = Store.__abstractmethods__ - {"aclose"}


@dataclass(slots=True, kw_only=True)
class Live:
    """A running gateway with everything that was put into it."""

    gateway: Gateway
    adapter: FakeAdapter
    model: FakeModel
    clock: Clock

    @property
    def store(self) -> Store:
        """The gateway's own."""
        return self.gateway.store

    async def tell(self, text: str, **where: Any) -> str:
        """Say something and return its event id at once; `where` as for `FakeAdapter.inbound`."""
        inbound = self.adapter.inbound(text, **where)
        await self.adapter.receive(inbound)
        return inbound.event_id

    async def answer(self, event_id: str) -> Outbound:
        """What an event is answered with, once it is."""
        await self.adapter.until(lambda: self.adapter.answer_to(event_id) is not None)
        answer = self.adapter.answer_to(event_id)
        assert answer is not None
        return answer

    async def ask(self, text: str, **where: Any) -> str:
        """Say something and return the text of its answer."""
        return (await self.answer(await self.tell(text, **where))).text

    async def tip(self, **where: Any) -> Session | None:
        """The present session of whoever would speak from there."""
        arrival = self.gateway.turns._arrival(self.adapter.inbound("x", **where))
        return await self.store.tip(arrival.key)

    async def quiet(self) -> None:
        """Return when nothing is accepted, running or being shown any more."""
        async with asyncio.timeout(PATIENCE):
            while True:
                status = await self.store.status()
                if not (status.waiting or status.unsent or self.gateway.lanes.active or self.gateway.outbox.in_flight):
                    return
                await asyncio.sleep(0.005)


def config_in(folder: Path, **sections: Any) -> Config:
    """The defaults with a store in `folder`; `sections` are the configuration's own models."""
    store = StoreEntry(url=f"sqlite:///{folder / 'legato.db'}")
    return Config().replace(store=store, **{"model": ModelEntry(provider="offline", name="fake"), **sections})


@asynccontextmanager
async def running(
    folder: Path,
    *,
    config: Config | None = None,
    model: FakeModel | None = None,
    adapter: FakeAdapter | None = None,
    clock: Clock | None = None,
    points: Points = ignore_points,
    engine: Callable[[], ContextEngine] | None = None,
    tools: Sequence[Tool] = (),
    store: Store | None = None,
) -> AsyncIterator[Live]:
    """A gateway through `bootstrap.build`, serving until the block ends; then it is stopped in order."""
    model, adapter, clock = model or FakeModel(), adapter or FakeAdapter(), clock or SystemClock()
    config = config or config_in(folder)
    if isinstance(points, KillAt) and store is None:
        assert config.store.sqlite_path is not None
        store = MortalStore(config.store.sqlite_path, clock=clock)
        store.kill = points
    parts = bootstrap.Parts(
        clock=clock, points=points, providers={"offline": model}, engine=engine, tools=tools, store=store
    )
    gateway = bootstrap.build(config, [adapter], parts)
    serving = asyncio.create_task(gateway.run())
    live = Live(gateway=gateway, adapter=adapter, model=model, clock=clock)
    try:
        await asyncio.wait(
            [serving, asyncio.create_task(adapter.until(lambda: adapter._accept is not None))],
            return_when=asyncio.FIRST_COMPLETED,
        )
        if serving.done():
            await serving
        yield live
    finally:
        if isinstance(points, KillAt) and points.passed.is_set():
            gateway.outbox._in_flight = 0  # what the dead process was sending is nobody's any more
        gateway.stop()
        while isinstance(clock, ManualClock) and not serving.done():
            await clock.advance(40.0)  # what still runs is given its last seconds
            await asyncio.wait([serving], timeout=0.005)
        async with asyncio.timeout(PATIENCE):
            await serving
