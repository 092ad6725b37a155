"""No engine breaks a turn."""

from __future__ import annotations

import asyncio
import copy
import json
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest

from gateway.context.engine import ContextEngine, Outcome
from gateway.context.guard import GuardedEngine
from gateway.domain.message import Message, user
from gateway.runtime.metrics import Counter, Metrics
from tests.support.transcripts import compressor, conversation


class Log:
    """Remembers events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def warning(self, event: str, **fields: Any) -> None:
        """Remember one."""
        self.events.append((event, fields))


class Plain(ContextEngine):
    """A third party's engine of plain functions, with the shortest signatures."""

    name = "plain"

    def __init__(self, result: Any = None) -> None:
        self.result = result
        self.threads: set[int] = set()
        self.call_model: Callable[..., str] | None = None

    def update_from_response(self, usage: Any) -> None:
        usage["prompt_tokens"] = -1

    def should_compress(self) -> bool:  # type: ignore[override]
        self.threads.add(threading.get_ident())
        return True

    def on_session_start(self, session_id: str, call_model: Any = None) -> None:  # type: ignore[override]
        self.call_model = call_model

    def compress(self, messages: Any) -> Any:  # type: ignore[override]
        self.threads.add(threading.get_ident())
        messages[0]["content"] = "vandalised"
        if self.call_model is not None:
            return [user(self.call_model(messages, 9))]
        return self.result


class Broken(ContextEngine):
    """Raises everywhere."""

    name = "broken"

    def __getattribute__(self, name: str) -> Any:
        if name.startswith(("on_", "get_", "should_", "has_", "handle_", "dump", "load", "update_", "compress")):
            raise RuntimeError("broken " + name)
        return super().__getattribute__(name)

    def update_from_response(self, usage: Any) -> None: ...

    def should_compress(self, prompt_tokens: int | None = None) -> bool:
        return True

    def compress(self, messages: Any, **options: Any) -> Any: ...  # type: ignore[override]


async def test_every_exception_gives_a_harmless_answer() -> None:
    log = Log()
    guard = GuardedEngine(Broken(), log=log)
    messages = conversation(1)
    assert not await guard.end("s", messages)
    assert not await guard.reset()
    await guard.learn({"prompt_tokens": 1})
    assert not await guard.wants(9)
    assert not await guard.wants_preflight(messages)
    assert await guard.has_content(messages)
    result, outcome = await guard.compress(messages, force=True)
    assert result == messages
    assert outcome.aborted
    assert outcome.error
    assert await guard.tool_schemas() == []
    assert json.loads(await guard.call_tool("look", {})) == {"error": "look failed."}
    assert await guard.status() == {}
    assert await guard.dump() == {}
    await guard.load({})
    await guard.update_model("m", 9)
    assert {event for event, _ in log.events} == {"context_engine_failed"}
    assert "broken compress" in json.dumps(log.events)


def test_attributes_that_are_none_or_raise_are_harmless() -> None:
    class Moody(Plain):
        threshold_tokens = "many"  # type: ignore[assignment]

        @property
        def supports_background(self) -> bool:  # type: ignore[override]
            raise RuntimeError("not today")

    guard = GuardedEngine(Moody(), log=Log())
    assert (guard.threshold_tokens, guard.supports_background, guard.automatic_blocked) == (0, False, False)
    assert GuardedEngine(compressor(), log=Log()).threshold_tokens == 4_000


async def test_a_start_that_raises_is_told() -> None:
    class Unstartable(Plain):
        def on_session_start(self, session_id: str, **info: Any) -> None:  # type: ignore[override]
            raise KeyError("home")

    assert not await GuardedEngine(Unstartable(), log=Log()).start("s", platform="x")
    assert await GuardedEngine(Plain(), log=Log()).start("s", platform="not in its signature")


async def test_plain_functions_run_in_a_thread_on_copies_without_unknown_arguments() -> None:
    engine = Plain([user("short")])
    guard = GuardedEngine(engine, log=Log())
    messages = conversation(1)
    given_one = copy.deepcopy(messages)
    usage = {"prompt_tokens": 5}
    await guard.learn(usage)
    assert usage == {"prompt_tokens": 5}
    assert await guard.wants(3)
    result, outcome = await guard.compress(messages, current_tokens=1, focus_topic="x", force=True, memory_context="y")
    assert messages == given_one
    assert result == [user("short")]
    assert outcome == Outcome()
    assert threading.get_ident() not in engine.threads


async def test_a_plain_engine_gets_a_blocking_model() -> None:
    async def call_model(messages: Sequence[Message], max_tokens: int) -> str:
        await asyncio.sleep(0)
        return f"{len(messages)} summarised"

    guard = GuardedEngine(Plain(), log=Log())
    await guard.start("s", call_model=call_model)
    result, _ = await guard.compress([user("a"), user("b")])
    assert result == [user("2 summarised")]


async def test_a_model_that_is_asked_from_threads_of_the_engines_own_is_counted() -> None:
    calls = Counter(name="calls", text="Calls.", labels=("turn",))
    turn = ContextVar[str]("turn")

    class Parallel(Plain):
        def compress(self, messages: Any) -> Any:
            with ThreadPoolExecutor(2) as pool:
                return [user(text) for text in pool.map(lambda each: self.call_model([each], 9), messages)]

    async def call_model(messages: Sequence[Message], max_tokens: int) -> str:
        calls.count(turn.get())
        return "short"

    metrics, guard = Metrics(), GuardedEngine(Parallel(), log=Log())
    with metrics.counting():
        turn.set("first")
        await guard.start("s", call_model=call_model)
        turn.set("second")
        result, _ = await guard.compress([user("a"), user("b")])
    assert result == [user("short")] * 2
    assert metrics.totals() == {"legato_calls_total second": 2.0}


@pytest.mark.parametrize("_", range(25))  # whichever of the two threads is ahead
async def test_cancelling_lets_go_of_a_thread_that_waits_for_the_model(_: int) -> None:
    asked, ended = asyncio.Event(), asyncio.Event()

    async def call_model(messages: Sequence[Message], max_tokens: int) -> str:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    guard = GuardedEngine(Plain(), log=Log())
    await guard.start("s", call_model=call_model)
    task = asyncio.create_task(guard.compress([user("a")]))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await ended.wait()


@pytest.mark.parametrize(
    "result",
    [None, "text", [], ["x"], [{"content": "no role"}], [{"role": "king"}], [{"role": "user", "content": {1}}], {}],
)
async def test_a_result_that_is_no_transcript_is_refused(result: Any) -> None:
    log = Log()
    messages = [user("a")]
    kept, outcome = await GuardedEngine(Plain(result), log=log).compress(messages)
    assert kept == messages
    assert outcome.aborted
    assert [event for event, _ in log.events] == ["context_engine_result_refused"]


@pytest.mark.parametrize("leave", [sys.exit, SystemExit, StopIteration])
async def test_an_engine_that_ends_the_program_ends_itself_only(leave: Callable[[], None]) -> None:
    class Leaving(Plain):
        def should_compress(self) -> bool:  # type: ignore[override]
            return self._leave()

        async def get_status(self) -> Any:  # type: ignore[override]
            return self._leave()

        @property
        def threshold_tokens(self) -> int:  # type: ignore[override]
            return self._leave()

        def _leave(self) -> Any:
            raise leave() or SystemExit(2)  # type: ignore[func-returns-value]

    log = Log()
    guard = GuardedEngine(Leaving(), log=log)
    assert not await guard.wants()
    assert await guard.status() == {}
    assert guard.threshold_tokens == 0
    assert [fields["method"] for _, fields in log.events] == ["should_compress", "get_status"]


async def test_an_engine_that_gives_more_than_any_window_holds_is_refused() -> None:
    flood = "x" * 17_000_000

    class Flooding(Plain):
        def dump_state(self) -> dict[str, Any]:
            return {"all": [flood]}

        def handle_tool_call(self, name: str, args: Any, **context: Any) -> Any:
            return flood

    engine, log = Flooding([user(flood)]), Log()
    guard = GuardedEngine(engine, log=log)
    kept, outcome = await guard.compress([user("a")])
    assert kept == [user("a")]
    assert outcome.error == "The context engine's result was refused: it has more than 16,000,000 characters."
    assert await guard.dump() == {}
    assert json.loads(await guard.call_tool("expand", {})) == {"error": "expand gave more than 16,000,000 characters."}
    knot: list[Any] = []
    knot.append(knot)
    engine.result = [{**user("a"), "more": knot}]
    assert (await guard.compress([user("a")]))[1].aborted


async def test_a_state_that_json_cannot_hold_is_refused() -> None:
    class Stateful(Plain):
        def dump_state(self) -> dict[str, Any]:
            return {"lock": threading.Lock()}

    assert await GuardedEngine(Stateful(), log=Log()).dump() == {}


async def test_tools_of_an_engine() -> None:
    class WithTools(Plain):
        def get_tool_schemas(self) -> list[Any]:
            return [{"type": "function", "function": {"name": "expand"}}, {"function": {}}, "junk"]

        async def handle_tool_call(self, name: str, args: Any, **context: Any) -> Any:
            context["messages"].clear()
            return {"expanded": args["what"]}

    guard = GuardedEngine(WithTools(), log=Log())
    messages = [user("a")]
    assert [schema["function"]["name"] for schema in await guard.tool_schemas()] == ["expand"]
    assert json.loads(await guard.call_tool("expand", {"what": "x"}, messages=messages)) == {"expanded": "x"}
    assert messages == [user("a")]


async def test_our_own_engine_is_called_inline_and_keeps_its_objects() -> None:
    guard = GuardedEngine(compressor(), log=Log())
    messages = conversation(20)
    result, outcome = await guard.compress(messages)
    assert outcome.fallback
    assert result[0] is messages[0]
    assert (await guard.status())["compression_count"] == 1
    assert (await guard.dump())["compression_count"] == 1
    assert not guard.automatic_blocked
