"""Events during a running turn: other messages by the busy mode, and the commands that must reach the turn."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.tools.base import ToolContext
from gateway.app.config import Config
from gateway.domain.chat import ChatAddress
from gateway.domain.message import text_of
from gateway.domain.turn import BUSY, STOPPED, SessionSettings
from gateway.store.sqlite.backend import SqliteStore
from gateway.turns.limits import INTERRUPTED
from gateway.turns.reception import PASSED_ON
from gateway.turns.turn import COMPACTION_STOPPED, KEPT_ASIDE
from tests.support.fakes import ManualClock
from tests.support.gateway import (
    FEW_TOOLS,
    FakeAdapter,
    FakeModel,
    Gate,
    Live,
    RecordingEngine,
    Say,
    config_in,
    echo,
    in_turn,
    running,
)

CLOCK = ("clock", "{}")
LONG = "a sentence that takes some room in the window " * 20


def mode(folder: Path, busy_mode: Any) -> Config:
    return config_in(folder, sessions=SessionSettings(busy_mode=busy_mode))


async def transcript(live: Live, **where: Any) -> list[str]:
    tip = await live.tip(**where)
    return [] if tip is None else [text_of(m) for m in await live.store.transcript(tip)]


# -- busy modes --------------------------------------------------------------------------------


async def test_queue_gives_every_message_its_own_turn_in_order_and_one_notice_now_and_then(
    tmp_path: Path, clock: ManualClock
) -> None:
    gate = Gate()
    async with running(tmp_path, clock=clock, model=FakeModel(in_turn(Say(text="one!", gate=gate)))) as live:
        events = [await live.tell("one")]
        await gate.until_waiting()
        events += [await live.tell("two"), await live.tell("three")]
        await clock.advance(31)
        events.append(await live.tell("four"))
        await live.adapter.until(lambda: len(live.adapter.shown("c", "notice")) == 2)
        assert len(live.model.requests) == 1
        gate.open()
        assert [(await live.answer(event)).text for event in events] == [
            "one!",
            "echo: two",
            "echo: three",
            "echo: four",
        ]
        assert live.adapter.shown("c", "notice") == [BUSY, BUSY]
        assert len(live.model.requests) == 4


async def test_steer_reaches_the_running_turn_before_its_next_step(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(calls=[CLOCK], gate=gate), Say(text="in metric, then")))
    async with running(tmp_path, config=mode(tmp_path, "steer"), model=model) as live:
        event = await live.tell("how far is it?")
        await gate.until_waiting()
        await live.tell("in metric units")
        await live.tell("/title Distances")
        await live.tell("and only after the command")
        gate.open()
        assert (await live.answer(event)).text == "in metric, then"
        await live.quiet()
        roles = [role for role, _ in model.spoken(1)]
        assert roles == ["user", "assistant", "tool", "user"]
        assert model.spoken(1)[-1] == ("user", "in metric units")
        assert len(live.adapter.shown("c", "reply")) == 2, "what came after the command had its own turn"


async def test_collect_answers_everything_that_waits_as_one_and_stops_at_a_command(tmp_path: Path) -> None:
    gates = [Gate(), Gate()]
    model = FakeModel(in_turn(Say(text="first", gate=gates[0]), Say(calls=[CLOCK], gate=gates[1]), Say(text="all")))
    async with running(tmp_path, config=mode(tmp_path, "collect"), model=model) as live:
        first = await live.tell("a question")
        await gates[0].until_waiting()
        for words in ("another", "and one more", "/title Questions", "after the command"):
            last = await live.tell(words)
        gates[0].open()
        assert (await live.answer(first)).text == "first"
        await gates[1].until_waiting()
        await live.tell("too late for that")
        gates[1].open()
        assert (await live.answer(last)).text == "echo: too late for that"
        assert [text for text in model.spoken(1) if text[0] == "user"][1:] == [
            ("user", "another"),
            ("user", "and one more"),
        ]
        assert live.adapter.shown("c", "reply")[:2] == ["first", "all"]


async def test_the_steer_command_works_in_every_mode_and_is_a_turn_of_its_own_if_it_comes_too_late(
    tmp_path: Path,
) -> None:
    gates = [Gate(), Gate()]
    model = FakeModel(in_turn(Say(calls=[CLOCK], gate=gates[0]), Say(text="done", gate=gates[1])))
    async with running(tmp_path, model=model) as live:
        event = await live.tell("work")
        await gates[0].until_waiting()
        await live.tell("/steer faster")
        gates[0].open()
        await gates[1].until_waiting()
        late = await live.tell("/steer too late")
        gates[1].open()
        assert (await live.answer(event)).text == "done"
        assert (await live.answer(late)).text == "echo: too late"
        assert ("user", "faster") in model.spoken(1)
        assert await transcript(live) == [
            "work", "", model.spoken(1)[2][1], "faster", "done", "too late", "echo: too late",
        ]  # fmt: skip


async def test_a_stop_also_stops_what_was_added_to_the_turn(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(first="Once", text=" …", gate=gate)))
    async with running(tmp_path, model=model) as live:
        await live.tell("tell me a story")
        await gate.until_waiting()
        await live.tell("/steer about a fox")
        await live.ask("/stop")
        await live.quiet()
        assert live.adapter.shown("c", "reply", "notice") == [PASSED_ON, "Once", STOPPED, KEPT_ASIDE]
        assert len(model.requests) == 1
        assert await transcript(live) == ["tell me a story", "Once", "about a fox"]


async def test_what_was_queued_is_answered_after_a_stop_and_what_was_steered_is_not(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="never", gate=gate)))
    async with running(tmp_path, config=mode(tmp_path, "steer"), model=model) as live:
        await live.tell("tell me a story")
        await gate.until_waiting()
        await live.tell("make it short")
        await live.tell("/steer with rhymes")
        queued = await live.tell("/queue and a poem")
        await live.ask("/stop")
        assert (await live.answer(queued)).text == "echo: and a poem"
        await live.quiet()
        shown = live.adapter.shown("c", "reply", "notice")
        assert shown.index(STOPPED) < shown.index("echo: and a poem")
        assert shown.count(KEPT_ASIDE) == 1
        assert [text for text in shown if text.startswith("echo")] == ["echo: and a poem"]


async def test_interrupt_ends_the_running_turn_and_keeps_what_it_did(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(first="Once upon a time", text=" …", gate=gate)))
    async with running(tmp_path, config=mode(tmp_path, "interrupt"), model=model) as live:
        first = await live.tell("tell me a story")
        await gate.until_waiting()
        second = await live.tell("no, a poem")
        assert (await live.answer(second)).text == "echo: no, a poem"
        assert (await live.answer(first)).text == "Once upon a time"
        assert live.adapter.shown() == ["Once upon a time", INTERRUPTED, "echo: no, a poem"]
        assert model.closed_early == 1
        assert model.spoken() == [
            ("user", "tell me a story"),
            ("assistant", "Once upon a time"),
            ("user", "no, a poem"),
        ]


async def test_a_command_never_interrupts(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(text="the end", gate=gate)))
    async with running(tmp_path, config=mode(tmp_path, "interrupt"), model=model) as live:
        story = await live.tell("tell me a story")
        await gate.until_waiting()
        title = await live.tell("/title Stories")
        assert "I have been working" in await live.ask("/status")
        gate.open()
        assert (await live.answer(story)).text == "the end"
        assert "“Stories”" in (await live.answer(title)).text


# -- what reaches a turn whose provider never returns ------------------------------------------


async def test_stop_status_and_help_are_answered_while_the_provider_never_returns(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path, model=FakeModel(in_turn(Say(text="never", gate=gate)))) as live:
        hung = await live.tell("hello")
        await gate.until_waiting()
        waiting = await live.tell("and me?")
        status = await live.ask("/status")
        assert re.match(r"I have been working for \d+ s: thinking, step 1\.", status)
        assert "Messages that are waiting for an answer: 1." in status
        assert "/compress" in await live.ask("/help all")
        assert await live.ask("hi", chat="another") == "echo: hi"
        assert (await live.ask("/stop")).startswith("Stopping.")
        assert (await live.answer(waiting)).text == "echo: and me?"
        assert live.adapter.answer_to(hung) is None
        assert STOPPED in live.adapter.shown("c", "notice")
        assert await live.ask("/status") != status
        assert live.model.closed_early == 1
        assert await live.ask("/stop") == "Nothing is running."


@pytest.mark.parametrize("command", ["/usage", "/context", "/version", "/model", "/sessions", "/resume", "/whoami"])
async def test_commands_that_only_look_are_answered_while_a_turn_runs(tmp_path: Path, command: str) -> None:
    gate = Gate()
    async with running(tmp_path, model=FakeModel(in_turn(Say(text="one"), Say(text="never", gate=gate)))) as live:
        await live.ask("hello")
        hung = await live.tell("and now?")
        await gate.until_waiting()
        assert await live.ask(command)
        assert live.adapter.answer_to(hung) is None
        assert BUSY not in live.adapter.shown("c", "notice")
        gate.open()
        assert (await live.answer(hung)).text == "never"


async def test_status_says_when_the_model_is_asked_again(tmp_path: Path, clock: ManualClock) -> None:
    gate = Gate()
    async with running(tmp_path, clock=clock, model=FakeModel(in_turn(Say(text="hi", pause=20.0, gate=gate)))) as live:
        event = await live.tell("hello")
        await gate.until_waiting()
        await clock.advance(5)
        status = (await live.ask("/status")).splitlines()[0]
        again = "The model did not answer, so I try again in 15 s."
        assert status == f"I have been working for 5 s: thinking, step 1. {again} /stop ends my work."
        await clock.advance(15)
        assert "again" not in await live.ask("/status")
        gate.open()
        await live.answer(event)


async def test_a_switch_of_the_model_waits_for_the_running_turn(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path, model=FakeModel(in_turn(Say(text="one", gate=gate)))) as live:
        first = await live.tell("hello")
        await gate.until_waiting()
        switch = await live.tell("/model other")
        await live.adapter.until(lambda: live.adapter.shown("c", "notice") == [BUSY])
        await live.ask("/version")
        assert live.adapter.answer_to(switch) is None
        gate.open()
        assert (await live.answer(first)).text == "one"
        assert "other" in (await live.answer(switch)).text


async def test_stop_while_a_tool_runs_gives_its_call_a_result(tmp_path: Path) -> None:
    gate = Gate()

    class Slow:
        name = "slow"
        description = "Takes for ever."
        parameters: Mapping[str, Any] = {"type": "object", "properties": {}}
        read_only = False
        idempotent = False
        timeout = 3_600.0

        async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
            await gate.pass_through()
            return "finished"

    model = FakeModel(in_turn(Say(calls=[("slow", "{}"), CLOCK])))
    async with running(tmp_path, model=model, tools=[Slow()]) as live:
        await live.tell("use the slow tool")
        await gate.until_waiting()
        assert "using slow, looking up the time" in await live.ask("/status")
        await live.ask("/stop")
        assert await live.ask("what happened?") == "echo: what happened?"
        tools = [text for role, text in model.spoken() if role == "tool"]
        assert len(tools) == 2
        assert any("may or may not have taken effect" in text for text in tools)


async def test_a_stop_in_a_compaction_leaves_the_conversation_as_it_was(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(summary=lambda *_: Say(text="never", gate=gate))
    async with running(tmp_path, model=model) as live:
        for number in range(12):
            await live.ask(f"message {number} {LONG}")
        before = await live.tip()
        compressing = await live.tell("/compress")
        await gate.until_waiting()
        assert "compressing" in await live.ask("/status")
        waiting = await live.tell("meanwhile")
        await live.ask("/stop")
        assert (await live.answer(compressing)).text == COMPACTION_STOPPED
        assert (await live.answer(waiting)).text == "echo: meanwhile"
        after = await live.tip()
        assert before is not None
        assert after is not None
        assert after.id == before.id


async def test_in_interrupt_mode_a_message_waits_for_a_manual_compaction(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(summary=lambda *_: Say(text="## Active Task\nNone\n## Goal\nTo talk.", gate=gate))
    async with running(tmp_path, config=mode(tmp_path, "interrupt"), model=model) as live:
        for number in range(12):
            await live.ask(f"message {number} {LONG}")
        compressing = await live.tell("/compress")
        await gate.until_waiting()
        event = await live.tell("meanwhile")
        await live.ask("/status")
        assert gate.waiting == 1
        gate.open()
        assert (await live.answer(compressing)).text.startswith("Compressed: ")
        assert (await live.answer(event)).text == "echo: meanwhile"


async def test_a_manual_compaction_can_still_be_stopped_after_a_message_came(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(summary=lambda *_: Say(text="never", gate=gate))
    async with running(tmp_path, config=mode(tmp_path, "interrupt"), model=model) as live:
        for number in range(12):
            await live.ask(f"message {number} {LONG}")
        compressing = await live.tell("/compress")
        await gate.until_waiting()
        event = await live.tell("meanwhile")
        await live.ask("/stop")
        assert (await live.answer(compressing)).text == COMPACTION_STOPPED
        assert (await live.answer(event)).text == "echo: meanwhile"


class Slow(SqliteStore):
    """A store whose named step is durable before it returns, and returns when the gate opens."""

    step = ""
    gate: Gate

    async def record_step(self, *args: Any) -> Any:
        return await self._late("record_step", await super().record_step(*args))

    async def begin_tools(self, *args: Any) -> Any:
        return await self._late("begin_tools", await super().begin_tools(*args))

    async def continue_session(self, *args: Any) -> Any:
        return await self._late("continue_session", await super().continue_session(*args))

    async def _late(self, step: str, result: Any) -> Any:
        if step == self.step:
            await self.gate.pass_through()
        return result


@pytest.mark.parametrize("step", ["record_step", "continue_session"])
async def test_a_stop_in_the_middle_of_a_write_tears_nothing(tmp_path: Path, step: str) -> None:
    config = config_in(tmp_path, tools=FEW_TOOLS)
    assert config.store.sqlite_path is not None
    clock = ManualClock()
    store = Slow(config.store.sqlite_path, clock=clock)
    store.gate = Gate()
    model = FakeModel(in_turn(Say(text=LONG, prompt=900)))
    engine = lambda: RecordingEngine([], limit=1_000 if step == "continue_session" else 10**9)  # noqa: E731
    async with running(tmp_path, config=config, store=store, model=model, engine=engine, clock=clock) as live:
        await live.ask(LONG)
        store.step = step
        model.script = in_turn(Say(calls=[CLOCK]), Say(text="done"))
        await live.tell("look at the clock")
        await store.gate.until_waiting()
        await live.ask("/stop")
        store.gate.open()
        await live.adapter.until(lambda: STOPPED in live.adapter.shown("c", "notice"))
        model.script = echo
        assert await live.ask("still there?") == "echo: still there?"
        said = await transcript(live)
        assert said.count("look at the clock") == 1
        assert said[-2:] == ["still there?", "echo: still there?"]
        tip = await live.tip()
        assert tip is not None
        assert tip.compaction_count == (1 if step == "continue_session" else 0)


class SlowToShowTyping(FakeAdapter):
    """A platform that takes its time to show that an answer is being made."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()

    async def typing(self, to: ChatAddress, active: bool) -> None:
        """Wait, at the beginning."""
        if active:
            await self.gate.pass_through()


async def test_stop_reaches_a_turn_that_has_not_begun_to_ask(tmp_path: Path) -> None:
    adapter = SlowToShowTyping()
    async with running(tmp_path, adapter=adapter) as live:
        await live.tell("a question")
        await adapter.gate.until_waiting()
        assert await live.ask("/stop") == "Stopping."
        await live.quiet()
        assert live.adapter.shown("c", "notice", "error") == [STOPPED]
        assert live.model.requests == []
