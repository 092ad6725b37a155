"""Helpers: a task goes to a model with a window of its own, and its answer alone comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.agent.caps import Caps
from gateway.agent.delegation import NOT_FINISHED
from gateway.agent.memory.snapshot import MemorySettings
from gateway.agent.tools.delegate import DelegateSettings
from gateway.agent.waking import MOST_IN_A_ROW, TOO_OFTEN
from gateway.app.config.models import Auxiliary, ToolSettings
from gateway.cli.reports import found_rows, session_rows, show_row
from gateway.domain.chat import SessionKey
from gateway.domain.message import text_of
from gateway.domain.turn import STOPPED, TurnSettings
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.plugin import ModelSettings
from gateway.runtime.clock import SystemClock
from gateway.runtime.structs import replace
from gateway.store.port import Store, under
from gateway.store.redis import RedisStore
from gateway.turns.delegated import NOBODY_TO_ASK, PROMPT
from tests.support.gateway import FakeAdapter, FakeModel, Gate, KillAt, Live, RecordingEngine, Say, config_in, running
from tests.support.tools import Payment, payments
from tests.support.waiting import eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

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
        keys = {row["session_id"]: row["key"] for row in await found_rows(live.store, "found", 20)}
        assert keys == {each.id: each.key.text for each in (tip, *children)}
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
        assert "A helper has been working for" in await live.ask("/status")
        gate.open()
        await eventually(lambda: live.adapter.shown()[-1] == "I was woken")
        await live.quiet()
        assert live.adapter.shown()[-2:] == [
            "I am continuing on my own: a helper has ended its task (look).",
            "I was woken",
        ]
        woken = [text_of(each.messages[-1]) for each in live.model.requests][-1]
        assert "found look" in woken
        assert "A helper has been working" not in await live.ask("/status")
        assert script.begun == ["look"]


POINTS = [  # of the caller, and of its helper
    ("turn.claimed", 2),
    ("turn.session_opened", 2),
    ("turn.model_called", 2),
    ("turn.tools_ran", 1),
    ("turn.step_recorded", 1),
    ("turn.step_recorded", 2),
    ("turn.step_recorded", 3),
    ("session.ended", 1),
    ("session.hook_called", 1),
    ("turn.finished", 1),
]


# One is waited for and the next works in the background; the crash laboratory of hands kills both at any moment.
@pytest.mark.parametrize(
    ("point", "nth", "background"), [(*each, number % 2 == 1) for number, each in enumerate(POINTS)]
)
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


class Held:
    """A script whose helpers wait at a gate before they answer."""

    def __init__(self, *tasks: str, **more: Any) -> None:
        self.script, self.gate = Script(*tasks, **more), Gate()

    def __call__(self, spec: ModelSpec, request: ModelRequest) -> Say:
        said = self.script(spec, request)
        return replace(said, gate=self.gate) if is_helper(request) else said


@pytest.mark.parametrize("background", [False, True], ids=["waited for", "in the background"])
async def test_a_stop_ends_the_tree(tmp_path: Path, reopened: Callable[[], Store], background: bool) -> None:
    held = Held("one", "two", background=background)
    async with running(tmp_path, model=FakeModel(held), store=reopened()) as live:
        await live.tell("look it up")
        await held.gate.until_waiting(2)
        if background:
            await eventually(lambda: live.adapter.shown())
        assert await live.ask("/stop") == "Stopping."
        await eventually(lambda: live.model.closed_early == 2)
        await live.quiet()
        assert live.gateway.running_turns.count() == 0
        assert await live.gateway.agents.sessions.helpers.of(HOME) == []
        children = await helpers_sessions(live)
        assert not [each for each in live.adapter.shown() if "on my own" in each], "they know what they stopped"
        last = [text_of((await live.store.transcript(each))[-1]) for each in children]
        assert last == [f"{NOT_FINISHED} {STOPPED}"] * 2
        assert await live.ask("/stop") == "Nothing is running."


@pytest.mark.parametrize("stopped", [False, True], ids=["answered", "stopped"])
async def test_helpers_work_in_several_processes(tmp_path: Path, redis_server: RedisServer, stopped: bool) -> None:
    """A process takes three lanes at most: of four, one is the other's."""
    redis_server.empty()
    held = Held("one", "two", "three")
    config = config_in(tmp_path, turns=TurnSettings(concurrent=2))

    def gateway() -> AbstractAsyncContextManager[Live]:
        store, model = RedisStore(redis_server.url, clock=SystemClock(), concurrency=2), FakeModel(held)
        return running(tmp_path, config=config, model=model, adapter=FakeAdapter(), store=store)

    async with gateway() as one, gateway() as two:
        await one.tell("look it up")
        await held.gate.until_waiting(3)
        running_turns = [each.gateway.running_turns.count() for each in (one, two)]
        assert sum(running_turns) == 4
        assert min(running_turns) > 0
        if stopped:
            await two.tell("/stop")  # either of them shows what the other has to say
            await eventually(lambda: "Stopping." in one.adapter.shown() + two.adapter.shown())
            await eventually(lambda: held.gate.waiting == 0)
            await one.quiet()
            assert {each.end_reason for each in await helpers_sessions(one)} == {"done"}
        else:
            held.gate.open()
            said = "together: found one; found two; found three"
            await eventually(lambda: one.adapter.shown() + two.adapter.shown())
            assert one.adapter.shown() + two.adapter.shown() == [said]


async def test_a_turn_that_waits_for_helpers_leaves_them_its_place(tmp_path: Path) -> None:
    config = config_in(tmp_path, turns=TurnSettings(concurrent=1))
    async with running(tmp_path, config=config, model=FakeModel(Script("one", "two"))) as live:
        assert await live.ask("look it up") == "together: found one; found two"
        assert await live.ask("and again") == "together: found one; found two"


async def test_a_fourth_helper_is_refused_and_a_helper_calls_none(tmp_path: Path) -> None:
    held = Held("one", "two", "three", "four")
    async with running(tmp_path, model=FakeModel(held)) as live:
        event = await live.tell("look it up")
        await held.gate.until_waiting(3)  # none is over before the fourth is called
        held.gate.open()
        answer = (await live.answer(event)).text
        assert answer.count("found ") == 3  # the calls of an answer run side by side: any of them may be the fourth
        assert answer.count("Error: 3 helpers") == 1
        (asked, *_) = [each for each in live.model.requests if is_helper(each)]
        names = {tool["function"]["name"] for tool in asked.tools}
        assert {"clock", "read_file", "search_history"} <= names
        assert names.isdisjoint({"delegate", "memory", "reminders", "send_file", "todo"})


async def test_a_helper_has_the_tools_that_are_named_and_asks_nobody(tmp_path: Path) -> None:
    pay, seen = Payment(), list[str]()

    def model(spec: ModelSpec, request: ModelRequest) -> Say:
        last = request.messages[-1]
        if not is_helper(request):
            return calls("pay it", tools=["pay", "memory"]) if last["role"] == "user" else Say(text="done")
        if last["role"] == "user":
            seen.extend(tool["function"]["name"] for tool in request.tools)
            return payments(5, 500)
        return Say(text=" / ".join(text_of(each) for each in request.messages[-2:]))

    async with running(tmp_path, model=FakeModel(model), tools=[pay]) as live:
        assert await live.ask("pay") == "done"
        assert seen == ["pay"]
        assert pay.paid == [5]
        assert NOBODY_TO_ASK in text_of(live.model.requests[-1].messages[-1])
        assert live.adapter.shown("c", "question") == []


async def test_a_conversation_that_only_wakes_itself_comes_to_an_end(tmp_path: Path, bwrap: None) -> None:
    seen = list[str]()

    def model(spec: ModelSpec, request: ModelRequest) -> Say:
        last = request.messages[-1]
        if is_helper(request) and last["role"] == "tool":
            return Say(text=text_of(last))
        if is_helper(request) and task_of(request) == "begin a command":
            return Say(calls=[("shell", json.dumps({"command": "true", "background": True}))])
        if is_helper(request):
            return Say(text="nothing new")
        if last["role"] == "tool":
            seen.append(text_of(last))
            return calls("begin a command") if TOO_OFTEN in seen[-1] else Say(text="waiting")
        return calls(f"look {len(seen)}", background=True)

    async with running(tmp_path, model=FakeModel(model)) as live:
        await live.ask("tell me when it changes")
        await eventually(lambda: len(seen) == MOST_IN_A_ROW + 2)
        await live.quiet()
        assert TOO_OFTEN in seen[MOST_IN_A_ROW]
        assert "Nothing can run in the background here" in seen[MOST_IN_A_ROW + 1], "nor does a helper begin anything"
        assert len(seen) == MOST_IN_A_ROW + 2
        await live.ask("go on")
        assert "works in the background" in seen[MOST_IN_A_ROW + 2]


async def test_the_notes_of_the_first_version_with_helpers_are_passed_over(tmp_path: Path) -> None:
    async with running(tmp_path, model=FakeModel()) as live:
        listed = json.dumps([{"id": "h_2", "brief": "Count", "since": 1.0}])
        await live.store.set_notes(under(HOME, "helpers"), {"h_1": "1", "open": listed})
        assert "A helper has been working" not in await live.ask("/status")
        assert await live.ask("hello") == "echo: hello"


async def test_helpers_may_have_a_model_of_their_own(tmp_path: Path) -> None:
    asked, script = list[tuple[bool, str]](), Script("look")

    def model(spec: ModelSpec, request: ModelRequest) -> Say:
        asked.append((is_helper(request), spec.name))
        return script(spec, request)

    config = config_in(tmp_path)
    small = config.model.model_copy(update={"name": "small"})
    config = config.replace(auxiliary=Auxiliary(mode="custom", delegate=small))
    async with running(tmp_path, config=config, model=FakeModel(model)) as live:
        assert await live.ask("look it up") == "together: found look"
        assert set(asked) == {(True, "small"), (False, "fake")}


async def test_tools_that_no_helper_can_have_are_told_and_no_helper_begins(tmp_path: Path) -> None:
    async with running(tmp_path, model=FakeModel(Script("look", tools=["Bash", "todo"]))) as live:
        answer = await live.ask("look it up")
        assert answer.startswith("together: Error: A helper cannot have these tools. It can have: clock, ")
        assert "todo" not in answer
        assert await helpers_sessions(live) == []


async def test_a_long_answer_is_kept_as_a_file_and_the_window_stays_small(tmp_path: Path) -> None:
    script = Script("one", answer=f"result: {LONG}")
    async with running(tmp_path, model=FakeModel(script)) as live:
        await live.ask("look it up")
        result = text_of(live.model.requests[-1].messages[-1])
        assert len(result) < 3_000
        assert "delegate-" in result
    script.more, script.tasks = {"background": True}, ("two",)
    async with running(tmp_path, model=FakeModel(script)) as live:
        await live.ask("look it up")
        await eventually(lambda: live.adapter.shown()[-1] == "I was woken")
        woken = text_of(live.model.requests[-1].messages[-1])
        assert len(woken) < 6_000
        name = re.search(r"delegate-\w+\.txt", woken)
        assert name is not None
        kept = await live.store.kept_file(HOME, f"output:{name[0]}")
        assert kept is not None


async def test_what_a_helper_costs_counts_for_its_caller_and_has_a_cap_of_its_own(
    tmp_path: Path, reopened: Callable[[], Store]
) -> None:
    priced = ModelSettings.model_validate({"provider": "offline", "name": "fake", "prices": {"input": 1, "output": 4}})
    tools = ToolSettings(delegate=DelegateSettings(budget_usd=0.00001))
    config = config_in(tmp_path, model=priced, tools=tools, budgets=Caps(per_user_daily_usd=1, per_session_usd=1))
    async with running(tmp_path, config=config, model=FakeModel(Script("one")), store=reopened()) as live:
        assert "This helper's spend cap of $0.00" in await live.ask("look it up")
    tools = ToolSettings(delegate=DelegateSettings(budget_usd=None))
    async with running(
        tmp_path, config=config.replace(tools=tools), model=FakeModel(Script("two")), store=reopened()
    ) as live:
        assert await live.ask("look it up") == "together: found two"
        metering = live.gateway.agents.metering.answering("u")
        used = {each.cap.name: each.spent for each in await metering.standings(HOME, await live.tip())}
        assert used["session"] == used["person"]
        totals = await live.store.usage(0.0, "purpose", key=HOME)
        costs = {each.label: each.cost_usd for each in totals}
        assert min(costs["delegate"], costs["turn"]) > 0
        assert sum(costs.values()) * 1_000_000 == pytest.approx(used["session"], abs=len(totals) + 4)


async def test_forgetting_takes_what_helpers_read_with_it(tmp_path: Path, reopened: Callable[[], Store]) -> None:
    async with running(tmp_path, model=FakeModel(Script("where NAME lives")), store=reopened()) as live:
        await live.ask("look up where NAME lives")
        await live.quiet()
        assert len(await helpers_sessions(live)) == 1
        await live.tell("/forget everything")
        await eventually(lambda: live.adapter.shown("c", "question"))
        await live.tell("y")
        await live.quiet()
        await eventually(lambda: len(live.adapter.shown()) >= 3)
        assert await helpers_sessions(live) == []
        assert await live.store.search("NAME", None, 5) == []


@pytest.mark.parametrize("what", ["everything", "NAME"])
async def test_forgetting_ends_the_helpers_that_work(tmp_path: Path, reopened: Callable[[], Store], what: str) -> None:
    held = Held("where NAME lives", background=True)
    async with running(tmp_path, model=FakeModel(held), store=reopened()) as live:
        await live.ask("look up where NAME lives")
        await held.gate.until_waiting(1)
        await live.tell(f"/forget {what}")
        if what != "everything":
            await eventually(lambda: len(live.adapter.shown()) == 2)
            await live.tell("/forget all")
        await eventually(lambda: live.adapter.shown("c", "question"))
        await live.tell("y")
        await eventually(lambda: live.adapter.shown()[-1].startswith("Forgot "))
        await live.quiet()
        assert live.model.closed_early == 1
        assert live.adapter.shown()[-1].startswith("Forgot ")
        assert await helpers_sessions(live) == []
        assert await live.gateway.agents.sessions.helpers.of(HOME) == []
        assert "A helper has been working" not in await live.ask("/status")


async def test_its_session_ends_once_is_in_no_list_and_teaches_nobody(tmp_path: Path) -> None:
    heard: list[tuple[Any, ...]] = []
    config = config_in(tmp_path, memory=MemorySettings())
    model = FakeModel(Script("remember that I like opera"))
    async with running(tmp_path, config=config, model=model, engine=lambda: RecordingEngine(heard)) as live:
        await live.ask("look it up")
        await live.quiet()
        (child,) = await helpers_sessions(live)
        assert [each[1] for each in heard if each[0] == "end"] == [child.id]
        assert child.id not in [each["id"] for each in await session_rows(live.store, 20)]
        assert "opera" not in await live.ask("/sessions")
        found = await live.store.search("opera", HOME, 5)
        assert child.id not in {each.session_id for passage in found for each in passage.turns}
        assert live.model.flushes == []
        assert (await show_row(live.store, child.id))["id"] == child.id
