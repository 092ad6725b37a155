"""Helpers: a task goes to a model with a window of its own, and its answer alone comes back."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.chat import SessionKey
from gateway.domain.message import text_of
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.store.port import Store
from gateway.turns.delegated import PROMPT
from tests.support.gateway import FakeModel, Gate, KillAt, Live, Say, config_in, running
from tests.support.waiting import eventually

pytest_plugins = ["tests.support.redis_server"]

HOME = SessionKey(platform="fake", chat="c")
LONG = "x" * 50_000


def calls(*tasks: str, **more: Any) -> Say:
    """The model hands these tasks on, in one step."""
    return Say(calls=[("delegate", json.dumps({"task": each, **more})) for each in tasks])


def is_helper(request: ModelRequest) -> bool:
    return text_of(request.messages[0]) == PROMPT


def task_of(request: ModelRequest) -> str:
    return next(text_of(each) for each in request.messages if each["role"] == "user")


class Script:
    """The model of both: the conversation hands `tasks` on, each helper looks at the clock and answers."""

    def __init__(self, *tasks: str, answer: str = "", **more: Any) -> None:
        self.tasks, self.answer, self.more = tasks, answer, more
        self.begun: list[str] = []

    def __call__(self, spec: ModelSpec, request: ModelRequest) -> Say:
        last = request.messages[-1]
        if is_helper(request):
            if last["role"] == "user":
                self.begun.append(task_of(request))
                return Say(calls=[("clock", "{}")])
            return Say(text=self.answer or f"found {task_of(request)}")
        if last["role"] == "tool":
            return Say(text=f"together: {'; '.join(results(request))}")
        if text_of(last).startswith("[In the background"):
            return Say(text="I was woken")
        return calls(*self.tasks, **self.more)


def results(request: ModelRequest) -> list[str]:
    found: list[str] = []
    for message in reversed(request.messages):
        if message["role"] != "tool":
            break
        found.insert(0, text_of(message).partition("\n")[0])
    return found


async def helpers_sessions(live: Live) -> list[Any]:
    return [each for each in await live.store.sessions(None, 50) if each.key.helper is not None]


async def test_only_the_answers_come_back_and_the_helpers_run_side_by_side(
    tmp_path: Path, reopened: Callable[[], Store]
) -> None:
    script = Script("one", "two", "three")
    async with running(tmp_path, model=FakeModel(script), store=reopened()) as live:
        assert await live.ask("look it up") == "together: found one; found two; found three"
        await live.quiet()
        assert live.adapter.shown() == ["together: found one; found two; found three"]
        assert sorted(script.begun) == ["one", "three", "two"]
        tip = await live.tip()
        assert tip is not None
        assert len(await live.store.transcript(tip)) == 6  # request, calls, three results, answer
        children = await helpers_sessions(live)
        assert {each.parent_id for each in children} == {tip.id}
        assert {each.end_reason for each in children} == {"done"}
        assert [each.id for each in await live.store.sessions(HOME, 10)] == [tip.id]
        assert await live.gateway.agents.sessions.helpers.of(HOME) == []


async def test_a_helper_in_the_background_wakes_its_conversation_once(
    tmp_path: Path, reopened: Callable[[], Store]
) -> None:
    gate = Gate()
    script = Script("look", background=True)

    def model(spec: ModelSpec, request: ModelRequest) -> Say:
        said = script(spec, request)
        return Say(calls=said.calls, gate=gate) if is_helper(request) and said.calls else said

    async with running(tmp_path, model=FakeModel(model), store=reopened()) as live:
        assert (await live.ask("look it up")).startswith("together: The helper h_")
        assert "A helper works for" in await live.ask("/status")
        gate.open()
        await eventually(lambda: live.adapter.shown()[-1] == "I was woken")
        await live.quiet()
        assert live.adapter.shown()[-2:] == ["I go on by myself: a helper has ended its task (look).", "I was woken"]
        woken = [text_of(each.messages[-1]) for each in live.model.requests][-1]
        assert "found look" in woken
        assert "A helper works" not in await live.ask("/status")
        assert script.begun == ["look"]


POINTS = [
    "turn.claimed",
    "turn.session_opened",
    "turn.model_called",
    "turn.tools_ran",
    "turn.step_recorded",
    "session.ended",
    "session.hook_called",
    "turn.finished",
]


@pytest.mark.parametrize("background", [False, True], ids=["waited for", "in the background"])
@pytest.mark.parametrize("nth", [1, 2, 3])
@pytest.mark.parametrize("point", POINTS)
async def test_a_kill_begins_no_helper_twice_and_loses_none(
    tmp_path: Path, point: Any, nth: int, background: bool
) -> None:
    script, kill = Script("one", background=background), KillAt(point, nth=nth)
    last = "I was woken" if background else "together: found one"
    shown = list[str]()
    async with running(tmp_path, model=FakeModel(script), points=kill) as live:
        await live.tell("look it up")
        await eventually(lambda: kill.passed.is_set() or last in live.adapter.shown())
        shown += live.adapter.shown()
    async with running(tmp_path, model=FakeModel(script)) as live:
        await eventually(lambda: last in [*shown, *(text.removeprefix("↻ ") for text in live.adapter.shown())])
        await live.quiet()
        (child,) = await helpers_sessions(live)
        assert child.end_reason == "done"
        assert child.message_count == 4
        shown += [text.removeprefix("↻ ") for text in live.adapter.shown()]
        assert len(shown) == (3 if background else 1), shown
        assert await live.gateway.agents.sessions.helpers.of(HOME) == []
