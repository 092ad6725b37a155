"""The contract of context engines, for every built-in one and for the one that docs/adding.md shows. A new one is
found by its name: adding an engine needs no change here."""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from gateway.context import ContextEngine, Outcome
from gateway.context.guard import GuardedEngine
from gateway.context.policy import CompressionSettings
from gateway.context.registry import EngineRegistry, builtin_engines
from gateway.domain.message import Message, assistant, note_of, tool_result, user
from gateway.runtime.tokens import TokenCounter
from tests.support.fakes import ManualClock

COUNTER = TokenCounter()
BUILTIN = builtin_engines(CompressionSettings(min_threshold_tokens=0), counter=COUNTER, clock=ManualClock(), redact=str)
DOCUMENTED = "last-words"
WINDOW = 8_000


class Silent:
    """A logger that fails the test: no built-in engine may need the guard."""

    def warning(self, event: str, **fields: Any) -> None:
        """Fail."""
        raise AssertionError(f"{event}: {fields}")


async def summarise(messages: Sequence[Message], max_tokens: int) -> str:
    """An auxiliary model."""
    return "## Active Task\nTell what part 39 is.\n## Goal\nKnow all parts."


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> EngineRegistry:
    """All engines, the documented one as the plug-in that its reader would make of it."""
    page = Path(__file__).parents[2].joinpath("docs/adding.md").read_text(encoding="utf-8")
    example = re.search(r"^## Add a context engine\n.*?^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert example is not None
    plugins = tmp_path_factory.mktemp("plugins")
    folder = plugins / "context_engine" / DOCUMENTED
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(example[1], encoding="utf-8")
    return EngineRegistry(BUILTIN, plugins, plugins / "homes")


@pytest.fixture(params=[*BUILTIN, DOCUMENTED])
def engine(request: pytest.FixtureRequest, registry: EngineRegistry) -> ContextEngine:
    """A fresh engine of each kind."""
    return registry.factory(request.param)()


async def seated(engine: ContextEngine, state: dict[str, Any] | None = None) -> GuardedEngine:
    """An engine in a session, as the host puts it there: state, model, start."""
    guard = GuardedEngine(engine, log=Silent())
    if state is not None:
        await guard.load(state)
    await guard.update_model("m", WINDOW, base_url="", api_key="", provider="p", max_output_tokens=None)
    info = {"platform": "console", "model": "m", "context_length": WINDOW, "home": "", "parent_session_id": None}
    assert await guard.start("s1", reason="new", call_model=summarise, **info)
    return guard


@pytest.fixture
async def guard(engine: ContextEngine) -> GuardedEngine:
    """The engine in a session, as the host holds it."""
    return await seated(engine)


def transcript() -> list[Message]:
    """Forty exchanges with a tool call in each, over half a window together, and a request."""
    messages: list[Message] = []
    for n in range(40):
        call: Any = {"id": f"c{n}", "type": "function", "function": {"name": "look", "arguments": json.dumps({"n": n})}}
        messages += [
            user(f"What is part {n}?"),
            assistant("", [call]),
            tool_result(f"c{n}", f"part {n} is fine\n" * 40),
        ]
        messages.append(assistant(f"Part {n} is fine."))
    messages.append(user("And all of them together?"))
    return [{**m, "_legato": {"id": str(i), "tokens": COUNTER.message(m)}} for i, m in enumerate(messages)]


def size(messages: Sequence[Message]) -> int:
    """Tokens of a transcript."""
    return sum(COUNTER.message(message) for message in messages)


def usage(prompt: int) -> dict[str, int]:
    """Return usage as a provider reports it."""
    return {"prompt_tokens": prompt, "completion_tokens": 50_000, "total_tokens": prompt + 50_000}


def test_identity_and_state(engine: ContextEngine, registry: EngineRegistry) -> None:
    assert engine.name in registry.names()
    for name in ("last_prompt_tokens", "last_completion_tokens", "last_total_tokens", "compression_count"):
        assert getattr(engine, name) == 0
    assert 0 < engine.threshold_percent < 1
    assert isinstance(engine.last_outcome, Outcome)


def test_each_session_has_its_own(engine: ContextEngine, registry: EngineRegistry) -> None:
    assert registry.factory(engine.name)() is not engine


async def test_only_prompt_tokens_decide(guard: GuardedEngine) -> None:
    threshold = guard.engine.threshold_tokens
    assert 0 < threshold < WINDOW
    await guard.learn(usage(threshold - 1))
    assert not await guard.wants()
    assert await guard.wants(threshold)
    await guard.learn(usage(threshold))
    assert await guard.wants()
    assert guard.engine.last_completion_tokens == 50_000


@pytest.mark.parametrize("force", [False, True])
async def test_a_compaction_shrinks_and_keeps_what_matters(guard: GuardedEngine, force: bool) -> None:
    messages = transcript()
    given_one = copy.deepcopy(messages)
    result, outcome = await guard.compress(
        messages, current_tokens=size(messages) + 1_000, focus_topic="parts", force=force, memory_context="likes tea"
    )
    assert messages == given_one
    assert outcome.error is None
    assert size(result) < guard.engine.threshold_tokens - 1_000
    assert result[0]["role"] == "user"
    assert result[-1] == messages[-1]
    calls = {c["id"] for m in result for c in m.get("tool_calls") or []}
    assert calls == {m["tool_call_id"] for m in result if m["role"] == "tool"}
    assert guard.engine.compression_count == 1
    if guard.engine.name not in BUILTIN:
        return  # the parent session has the originals; only an engine of ours must name them as well
    reachable = {note_of(m).get("id") for m in result} | {i for m in result for i in note_of(m).get("derived_from", [])}
    assert {note_of(m)["id"] for m in messages} <= reachable


async def test_it_works_without_a_model(engine: ContextEngine) -> None:
    guard = GuardedEngine(engine, log=Silent())
    await guard.start("s1", context_length=WINDOW)
    result, outcome = await guard.compress(transcript())
    assert size(result) < size(transcript())
    assert not outcome.aborted


async def test_nothing_to_do_gives_the_same_messages_and_says_why(guard: GuardedEngine) -> None:
    for messages in ([], [user("hi")], transcript()[:4]):
        result, outcome = await guard.compress(messages, force=True)
        assert result == messages
        assert outcome.error
        assert not await guard.has_content(messages)
    assert await guard.has_content(transcript())


async def test_state_survives_a_restart(guard: GuardedEngine, registry: EngineRegistry) -> None:
    await guard.learn(usage(3_000))
    await guard.compress(transcript())
    state = json.loads(json.dumps(await guard.dump()))
    again = await seated(registry.factory(guard.engine.name)(), state=state)
    assert again.engine.compression_count == 1
    assert await again.dump() == await guard.dump()


async def test_a_reset_zeroes_the_counters(guard: GuardedEngine) -> None:
    await guard.learn(usage(3_000))
    await guard.compress(transcript())
    assert await guard.reset()
    assert (guard.engine.last_prompt_tokens, guard.engine.compression_count) == (0, 0)


async def test_a_model_switch_recomputes_the_threshold(guard: GuardedEngine) -> None:
    before = guard.engine.threshold_tokens
    await guard.update_model("large", WINDOW * 10, base_url="", api_key="", provider="p")
    assert guard.engine.context_length == WINDOW * 10
    assert guard.engine.threshold_tokens > before


async def test_status_tools_and_end(guard: GuardedEngine) -> None:
    await guard.learn(usage(WINDOW * 3))
    status = await guard.status()
    assert status["usage_percent"] == 100.0
    assert status["context_length"] == WINDOW
    json.dumps(status)
    assert isinstance(await guard.tool_schemas(), list)
    assert "error" in json.loads(await guard.call_tool("no_such_tool", {}, messages=transcript()))
    assert await guard.end("s1", transcript())


@pytest.mark.parametrize("name", BUILTIN)
def test_signatures_take_every_optional_argument_of_the_port(name: str) -> None:
    engine = BUILTIN[name]()
    for method in ("compress", "should_compress", "update_model"):
        port = set(inspect.signature(getattr(ContextEngine, method)).parameters) - {"self"}
        assert port <= set(inspect.signature(getattr(engine, method)).parameters)
