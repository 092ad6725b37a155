"""A whole gateway in the test's own process: a fake platform, a scripted model, a recording engine.

async with running(tmp_path, model=Model(says("hi"))) as live:
    assert await live.ask("hello") == "hi"
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gateway.agent.memory.snapshot import MemorySettings
from gateway.agent.tools.base import Tool
from gateway.app import build as bootstrap
from gateway.app.config import Config
from gateway.app.config.models import StoreSettings, ToolSettings
from gateway.app.gateway import Gateway
from gateway.context.engine import ContextEngine, Outcome
from gateway.domain.adapter import Accept, Accepted, Limits
from gateway.domain.chat import Attachment, ChatType, Inbound, InboundKind, Outbound, Source
from gateway.domain.message import Message, text_of, user
from gateway.domain.session import Session
from gateway.domain.turn import SessionSettings
from gateway.providers.base import Provider
from gateway.providers.plugin import ModelSettings as ModelEntry
from gateway.runtime.clock import Clock, Ids, SystemClock, SystemIds
from gateway.runtime.points import Point, Points, ignore_points
from gateway.runtime.tokens import TokenCounter
from gateway.store.port import Store
from gateway.store.sqlite.backend import SqliteStore
from tests.support.empty_store import put_empty_store
from tests.support.fakes import ManualClock
from tests.support.model import PATIENCE, Changing, FakeModel, Gate, Say, echo, in_turn
from tests.support.waiting import pauses

__all__ = [
    "FakeAdapter",
    "FakeModel",
    "Fetching",
    "Gate",
    "KillAt",
    "Killed",
    "Live",
    "RecordingEngine",
    "Say",
    "config_in",
    "echo",
    "in_turn",
    "running",
]


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
        kind: InboundKind = more.pop("kind", "message")
        facts = {
            name: more.pop(name) for name in ("sent_at", "reply_to", "place", "attachments", "terms") if name in more
        }
        source = Source(platform=self.name, chat=chat, chat_type=chat_type, user=user, **more)
        return Inbound(event_id=event or self._ids.new("e"), source=source, text=text, kind=kind, **facts)

    def answer_to(self, event_id: str) -> Outbound | None:
        """The reply, command answer or error that an event got."""
        aside = ("notice", "remark", "question")
        return next((row for row in self.sent if row.answers == event_id and row.kind not in aside), None)

    def shown(self, chat: str = "c", *kinds: str) -> list[str]:
        """The texts shown in a chat, of these kinds (none given: all)."""
        return [row.text for row in self.sent if row.to.chat == chat and (not kinds or row.kind in kinds)]


class Fetching(FakeAdapter):
    """Hands over the same content for every file, and takes files."""

    def __init__(self, content: bytes) -> None:
        super().__init__(limits=Limits(trusted=True, file_bytes=1_000_000))
        self.content = content

    async def fetch(self, file: Attachment) -> bytes:
        return self.content

    async def send_file(self, outbound: Outbound, content: bytes) -> str:
        return await self.send(outbound)


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

    def compress(  # type: ignore[override]  # engines of before `force` take no more
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
        if name in STORE_STEPS and kill is not None and kill.passed.is_set():
            raise Killed
        return object.__getattribute__(self, name)


STORE_STEPS = {name for role in Store.__mro__ for name in vars(role) if not name.startswith("_")} - {"aclose", "rest"}


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
        """Return the answer to an event, once there is one."""
        await self.adapter.until(lambda: self.adapter.answer_to(event_id) is not None)
        answer = self.adapter.answer_to(event_id)
        assert answer is not None
        return answer

    async def ask(self, text: str, **where: Any) -> str:
        """Say something and return the text of its answer."""
        return (await self.answer(await self.tell(text, **where))).text

    async def tip(self, **where: Any) -> Session | None:
        """The present session of whoever would speak from there."""
        arrival = self.gateway.readers.reception.arrival(self.adapter.inbound("x", **where))
        return await self.store.tip(arrival.key)

    async def advance_until(self, holds: Callable[[], Any], *, seconds: float) -> None:
        """Let time pass, so many seconds a step, until it (awaited if need be) holds. Before each step the store's
        threads do what they were asked to, and any other has a moment: on a busy machine time would else run ahead of
        them, beyond every limit."""
        assert isinstance(self.clock, ManualClock)
        async with asyncio.timeout(PATIENCE):
            while not (await each if inspect.isawaitable(each := holds()) else each):
                await self.store.set_notes("nobody", {})
                await self.store.status()
                await asyncio.sleep(0.002)
                await self.clock.advance(seconds)

    async def quiet(self) -> None:
        """Return when nothing is accepted, running or being shown, and no hook is owed any more."""
        async with asyncio.timeout(PATIENCE):
            pause = pauses()
            while True:
                status = await self.store.status()
                busy = self.gateway.lanes.active or self.gateway.outbox.in_flight
                if not (status.waiting or status.unsent or busy or await self.store.pending_hooks(1)):
                    return
                await asyncio.sleep(next(pause))


FEW_TOOLS: Final = ToolSettings(offered={"*": ("clock", "read_file", "search_history", "send_file", "todo")})
"""For windows that the schemas of all tools would fill, and for promises about tokens."""


def config_in(folder: Path, **sections: Any) -> Config:
    """The defaults with a store in `folder`, and without what asks a model beside the conversation; `sections`
    are the configuration's own models."""
    path = folder / "legato.db"
    if "store" not in sections:
        put_empty_store(path)
    store = StoreSettings(url=f"sqlite:///{path}")
    model, memory = ModelEntry(provider="offline", name="fake"), MemorySettings(flush=False)
    quiet = {"memory": memory, "sessions": SessionSettings(titles=False)}
    return Config().replace(**{"store": store, "model": model, **quiet, **sections})


@asynccontextmanager
async def running(
    folder: Path,
    *,
    config: Config | None = None,
    model: FakeModel | None = None,
    provider: Provider | None = None,
    others: Mapping[str, Provider] | None = None,
    adapter: FakeAdapter | None = None,
    clock: Clock | None = None,
    ids: Ids | None = None,
    points: Points = ignore_points,
    engine: Callable[[], ContextEngine] | None = None,
    tools: Sequence[Tool] = (),
    store: Store | None = None,
    counter: TokenCounter | None = None,
) -> AsyncIterator[Live]:
    """A gateway through `bootstrap.build`, serving until the block ends; then it is stopped in order.
    `provider` answers for `openai` in the place of `model`, and `others` for those of their names."""
    model, adapter, clock = model or FakeModel(), adapter or FakeAdapter(), clock or SystemClock()
    config = config or config_in(folder)
    if isinstance(points, KillAt) and store is None:
        assert config.store.sqlite_path is not None
        store = MortalStore(config.store.sqlite_path, clock=clock)
        store.kill = points
    parts = bootstrap.Parts(
        clock=clock,
        ids=ids,
        points=points,
        providers={"offline": model, "openai": provider or model} | dict(others or {}),
        engine=engine,
        tools=tools,
        store=store,
        counter=counter,
    )

    def was_killed() -> bool:
        return isinstance(points, KillAt) and points.passed.is_set()

    gateway = bootstrap.build(config, [adapter], parts)
    serving = asyncio.create_task(gateway.run())
    live = Live(gateway=gateway, adapter=adapter, model=model, clock=clock)
    try:
        await asyncio.wait(
            [serving, asyncio.create_task(adapter.until(lambda: adapter._accept is not None))],
            return_when=asyncio.FIRST_COMPLETED,
        )
        if serving.done() and not was_killed():
            await serving
        yield live
    finally:
        if was_killed():
            gateway.outbox.in_flight = 0  # what the dead process was sending is nobody's any more
        gateway.stop()
        while isinstance(clock, ManualClock) and not serving.done():
            await clock.advance(1.0)  # what still runs is given its last seconds, and time runs ahead of no thread
            await asyncio.wait([serving], timeout=0.005)
        async with asyncio.timeout(PATIENCE):
            try:
                await serving
            except Killed:
                assert was_killed()
