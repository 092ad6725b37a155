"""Foreign code at the gateway's edges: adapters, tools, engines and models that misbehave."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from gateway.agent.asking import REPEATED
from gateway.agent.tools.base import ToolContext
from gateway.app.build import Parts, build
from gateway.domain.adapter import Accept
from gateway.domain.chat import ChatAddress, Outbound
from gateway.domain.message import Message, text_of
from gateway.providers.base import ModelEvent, ModelRequest, ModelSpec, TextDelta
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.records import StoreStatus
from gateway.store.sqlite.backend import SqliteStore
from tests.support.fakes import ManualClock
from tests.support.gateway import (
    FEW_TOOLS,
    FakeAdapter,
    FakeModel,
    Live,
    RecordingEngine,
    Say,
    config_in,
    in_turn,
    running,
)
from tests.support.model import newest

LONG = "a sentence that takes some room in the window " * 20

# -- adapters ----------------------------------------------------------------------------------


class Clumsy(FakeAdapter):
    """A platform whose niceties fail with errors of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.partials = 0

    async def typing(self, to: ChatAddress, active: bool) -> None:
        raise RuntimeError("no typing today")

    async def show_partial(self, outbound: Outbound) -> None:
        self.partials += 1
        raise OSError("the screen is gone")


async def test_an_adapter_that_fails_to_show_progress_does_not_cost_the_reply(tmp_path: Path) -> None:
    adapter = Clumsy()
    model = FakeModel(in_turn(Say(first="one ", text="two")))
    async with running(tmp_path, adapter=adapter, model=model) as live:
        assert await live.ask("hello") == "one two"
        assert await live.ask("again") == "echo: again"
        assert adapter.partials == 2, "asked again in the same turn although it failed"


async def test_an_adapter_that_fails_to_send_with_a_foreign_error_is_asked_once_more(
    tmp_path: Path, clock: ManualClock
) -> None:
    adapter = FakeAdapter()
    adapter.failures = [ValueError("a bug")]
    async with running(tmp_path, adapter=adapter, clock=clock) as live:
        event = await live.tell("hello")
        assert await patient(live, event) == "↻ echo: hello", "it is not known whether this was shown"


class Breaking(FakeAdapter):
    """A platform whose library meets a bug, so many times."""

    def __init__(self, bugs: int = 0) -> None:
        super().__init__()
        self.bugs, self.begun = bugs, 0
        self.account, self.waits_for_account, self.reader_sends = "bot", True, False

    async def run(self, accept: Accept) -> None:
        self.begun += 1
        self._accept = accept  # or `running` would wait for it in vain
        self.changed()
        if self.begun <= self.bugs:
            raise KeyError("channel_id")
        await super().run(accept)


async def test_a_platform_that_meets_a_bug_is_read_again_after_growing_pauses(
    tmp_path: Path, clock: ManualClock
) -> None:
    adapter = Breaking(bugs=3)
    async with running(tmp_path, adapter=adapter, clock=clock) as live:
        for begun, pause in enumerate((1.0, 2.0, 4.0), 1):
            await adapter.until(lambda begun=begun: adapter.begun == begun)  # type: ignore[misc]
            await clock.until_due_in(pause)
            await clock.advance(pause)
        await live.tell("hello")
        await adapter.until(lambda: "echo: hello" in adapter.shown())
        assert live.gateway.metrics.totals()["legato_readers_restarted_total fake broke"] == 3.0


class Standing(Breaking):
    """A platform whose library says nothing any more."""

    longest_silence = 300.0
    alive_at: float | None = None


async def test_a_platform_that_stands_still_is_read_anew(tmp_path: Path, clock: ManualClock) -> None:
    adapter = Standing()
    async with running(tmp_path, adapter=adapter, clock=clock) as live:
        await adapter.until(lambda: adapter.begun == 1)
        await live.gateway.look()  # nothing is being read: nothing to say
        adapter.alive_at = clock.monotonic()
        await clock.advance(299.0)
        await live.gateway.look()
        assert adapter.begun == 1
        await clock.advance(2.0)
        with capture_logs() as logs:
            await live.gateway.look()
        await adapter.until(lambda: adapter.begun == 2)
        assert ("watchdog", "reader_still", "fake") in [
            (each["event"], each.get("kind"), each.get("about")) for each in logs
        ]
        assert await live.ask("hello") == "echo: hello"


async def test_a_terminal_that_meets_a_bug_is_not_read_again(tmp_path: Path) -> None:
    adapter = Breaking(bugs=1)
    adapter.is_terminal = True  # type: ignore[attr-defined]
    gateway = build(config_in(tmp_path), [adapter], Parts(providers={"offline": FakeModel()}))
    assert await gateway.run() is False
    assert adapter.begun == 1


# -- the disk while a turn runs ------------------------------------------------------------------


class NoNotices(SqliteStore):
    """A store that cannot take a message of no turn's end."""

    async def emit(self, outbound: Sequence[Outbound]) -> tuple[Outbound, ...]:
        raise StoreUnavailable("The disk is full.")


async def test_a_notice_that_cannot_be_stored_does_not_end_the_turn(tmp_path: Path) -> None:
    store = NoNotices(tmp_path / "legato.db", clock=SystemClock(), concurrency=256)
    model = FakeModel(in_turn(Say(text=LONG, prompt=900)))
    async with running(tmp_path, store=store, model=model, engine=lambda: RecordingEngine([], limit=1_000)) as live:
        await live.ask(LONG)
        assert await live.ask("go on") == "echo: go on"


class Elsewhere(SqliteStore):
    """A store that cannot be asked how much is left, the first time."""

    asked = 0

    async def status(self, platforms: Collection[str] | None = None) -> StoreStatus:
        self.asked += 1
        if self.asked == 1:
            raise StoreUnavailable("The server is away.")
        return await super().status(platforms)


async def test_the_end_of_the_input_waits_for_a_store_that_is_away(tmp_path: Path) -> None:
    store = Elsewhere(tmp_path / "legato.db", clock=SystemClock(), concurrency=256)
    adapter = FakeAdapter()
    gateway = build(config_in(tmp_path), [adapter], Parts(store=store, providers={"offline": FakeModel()}))
    adapter.end()
    assert await gateway.run()
    assert store.asked == 2


# -- models --------------------------------------------------------------------------------------


async def test_a_blank_answer_is_no_answer(tmp_path: Path) -> None:
    model = FakeModel(in_turn(Say(text="  \n"), Say(text="here I am")))
    async with running(tmp_path, model=model) as live:
        assert await live.ask("hello") == "here I am"


async def test_what_no_store_can_hold_is_stored_all_the_same(tmp_path: Path) -> None:
    model = FakeModel(in_turn(Say(text="a\x00b\ud800c", calls=[("clock\ud800", '{"timezone": "\udfff"}')])))
    async with running(tmp_path, model=model) as live:
        assert await live.ask("hello") == "echo: hello"
        assert await live.ask("go on") == "echo: go on"
        assert "go on" in await live.ask("/recall go on")


# -- tools ---------------------------------------------------------------------------------------


class OddTool:
    """A tool whose result is whatever it was given."""

    name = "odd"
    description = "Gives odd results."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {}}
    read_only = False
    idempotent = False
    timeout = 5.0

    def __init__(self, result: Any) -> None:
        self.result = result

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> Any:
        return self.result


@pytest.mark.parametrize("result", [None, 7, {"a": object()}, b"bytes", ["x"]])
async def test_a_tool_that_returns_no_text_gives_the_model_text(tmp_path: Path, result: Any) -> None:
    model = FakeModel(in_turn(Say(calls=[("odd", "{}")])))
    async with running(tmp_path, model=model, tools=[OddTool(result)]) as live:
        assert await live.ask("hello") == "echo: hello"
        (shown,) = [message for message in model.requests[-1].messages if message["role"] == "tool"]
        assert isinstance(shown["content"], str)


# -- engines -------------------------------------------------------------------------------------


class Hanging(RecordingEngine):
    """An engine whose `method` never returns; `blocking`: it holds its thread, else it is a coroutine."""

    def __init__(self, method: str, *, blocking: bool) -> None:
        super().__init__([])
        self.release = threading.Event()
        self.called = 0

        def block(*_: Any, **__: Any) -> None:
            self.called += 1
            self.release.wait(60)

        async def wait(*_: Any, **__: Any) -> None:
            self.called += 1
            await asyncio.Event().wait()

        setattr(self, method, block if blocking else wait)

    def __deepcopy__(self, memo: Any) -> Hanging:
        return self


async def patient(live: Live, event: str) -> str:
    """The answer, with as much virtual time as it takes."""
    await live.advance_until(lambda: live.adapter.answer_to(event), seconds=5.0)
    return (await live.answer(event)).text


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize(
    "method", ["on_session_start", "dump_state", "load_state", "update_model", "should_compress", "get_tool_schemas"]
)
async def test_an_engine_that_hangs_does_not_hold_up_its_chat_for_ever(
    tmp_path: Path, clock: ManualClock, method: str, blocking: bool
) -> None:
    engine = Hanging(method, blocking=blocking)
    try:
        async with running(tmp_path, engine=lambda: engine, clock=clock) as live:
            assert await patient(live, await live.tell("hello")) == "echo: hello"
            assert engine.called
    finally:
        engine.release.set()


async def test_an_engine_that_hangs_at_a_sessions_end_does_not_keep_the_next_one_from_starting(
    tmp_path: Path, clock: ManualClock
) -> None:
    engine = Hanging("on_session_end", blocking=False)
    async with running(tmp_path, engine=lambda: engine, clock=clock) as live:
        assert await patient(live, await live.tell("hello")) == "echo: hello"
        assert "fresh session" in await patient(live, await live.tell("/new"))


class Toolish(RecordingEngine):
    """Offers tools: one under a name that the gateway's own has, one that never returns."""

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        names = ("clock", "expand", "broken")
        schemas: list[dict[str, Any]] = [
            {"type": "function", "function": {"name": name, "description": "x", "parameters": {"type": "object"}}}
            for name in names
        ]
        schemas[2]["function"]["parameters"] = {"default": {1, 2}}
        return schemas

    async def handle_tool_call(self, name: str, args: Mapping[str, Any], **context: Any) -> str:
        await asyncio.Event().wait()
        return "never"


async def test_an_engines_tools_neither_shadow_the_gateways_nor_run_without_a_limit(
    tmp_path: Path, clock: ManualClock
) -> None:
    model = FakeModel(in_turn(Say(calls=[("clock", "{}"), ("expand", "{}")])))
    async with running(tmp_path, model=model, engine=lambda: Toolish([]), clock=clock) as live:
        event = await live.tell("hello")
        await model.until(lambda: model.requests)  # time that passed before would be the schemas'
        assert await patient(live, event) == "echo: hello"
        offered = [tool["function"]["name"] for tool in model.requests[0].tools]
        assert len(offered) == len(set(offered))
        assert "broken" not in offered
        results = [text_of(message) for message in model.requests[-1].messages if message["role"] == "tool"]
        assert "UTC" in results[0]
        assert "did not finish" in results[1]


GARBAGE: Sequence[Any] = (
    [{"role": "user", "content": {"text": "x"}}],
    [{"role": "user", "content": 5}],
    [{"role": "user", "content": "x", "_legato": {"id": ["unhashable"]}}],
    [{"role": "user", "content": "x", "_legato": {"tokens": "many", "derived_from": 5}}],
    [{"role": "tool", "content": "x"}],
    [{"role": "assistant", "tool_calls": "none"}],
    [{"role": "user"}],
    "text",
    None,
    [],
)


@pytest.mark.parametrize("garbage", GARBAGE, ids=str)
async def test_an_engine_that_returns_garbage_costs_no_conversation(tmp_path: Path, garbage: Any) -> None:
    class Garbage(RecordingEngine):
        def compress(self, messages: Sequence[Message], *_: Any, **__: Any) -> Any:
            return garbage

    async with running(tmp_path, engine=lambda: Garbage([], limit=200)) as live:
        for number in range(3):
            words = f"{LONG} number {number}"
            assert await live.ask(words) == f"echo: {words}"
        assert await live.ask("/compress")
        assert await live.ask("and now") == "echo: and now"
        for request in live.model.requests:
            for message in request.messages:
                assert message.get("content") is None or isinstance(message["content"], str | list)


async def test_a_stop_while_an_engine_dawdles_over_the_child_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The continuation exists by then: the turn must end in it, and the lane go on."""
    monkeypatch.setattr("gateway.runtime.tasks._LAST_CHANCE", 0.05)
    begun = asyncio.Event()

    class Dawdling(RecordingEngine):
        async def on_session_start(self, session_id: str, **info: Any) -> None:  # type: ignore[override]
            if info["reason"] == "compression":
                begun.set()
                await asyncio.Event().wait()

    config = config_in(tmp_path, tools=FEW_TOOLS)
    async with running(tmp_path, config=config, engine=lambda: Dawdling([], limit=1_000)) as live:
        live.model.script = in_turn(Say(text=LONG, prompt=900))
        await live.ask(LONG)
        parent = await live.tip()
        event = await live.tell("go on")
        await begun.wait()
        await live.tell("/stop")
        await live.adapter.until(lambda: any("Stopped" in text for text in live.adapter.shown()))
        child = await live.tip()
        assert parent is not None
        assert child is not None
        assert child.parent_id == parent.id
        assert await live.ask("and now?") == "echo: and now?"
        assert "go on" in [text for _, text in live.model.spoken()]
        assert event


async def test_an_answer_that_never_ends_is_ended(tmp_path: Path) -> None:
    class Endless(FakeModel):
        async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
            if newest(request) != "hello":
                async for event in super().stream(spec, request):
                    yield event
                return
            while True:
                yield TextDelta(text="and so on, " * 5_000)

    async with running(tmp_path, model=Endless()) as live:
        assert (await live.ask("hello")).strip() == "and so on,"
        assert await live.ask("again") == "echo: again"
        assert REPEATED in live.adapter.shown("c", "notice")
