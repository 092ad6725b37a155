"""What happens while a turn runs: other messages, /stop, limits, full lanes, many lanes at once."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from gateway.adapter import Limits
from gateway.agent.loop import NO_WORDS_LEFT, OUT_OF_STEPS
from gateway.attempt import COMPACTION_STOPPED, INTERRUPTED, STOPPED
from gateway.config import Config
from gateway.config.models import Sessions, Turns
from gateway.domain.message import text_of
from gateway.store.base import Claim
from gateway.store.sqlite.store import SqliteStore
from gateway.tools.base import ToolContext
from gateway.turns import BUSY, FULL
from tests.fakes import ManualClock
from tests.fakes_gateway import (
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
    return config_in(folder, sessions=Sessions(busy_mode=busy_mode))


async def transcript(live: Live, **where: Any) -> list[str]:
    tip = await live.tip(**where)
    return [] if tip is None else [text_of(m) for m in (await live.store.transcript(tip)).messages]


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
        await live.tell("/version")
        await live.tell("and only after the command")
        gate.open()
        assert (await live.answer(event)).text == "in metric, then"
        await live.quiet()
        roles = [role for role, _ in model.spoken(1)]
        assert roles == ["user", "assistant", "tool", "user"]
        assert model.spoken(1)[-1] == ("user", "in metric units")
        assert len(live.adapter.shown("c", "reply")) == 2, "what came after the command had its own turn"


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
        usage = await live.tell("/usage")
        assert "Working" in await live.ask("/status")
        gate.open()
        assert (await live.answer(story)).text == "the end"
        assert "1 calls" in (await live.answer(usage)).text


# -- what reaches a turn whose provider never returns ------------------------------------------


async def test_stop_status_and_help_are_answered_while_the_provider_never_returns(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path, model=FakeModel(in_turn(Say(text="never", gate=gate)))) as live:
        hung = await live.tell("hello")
        await gate.until_waiting()
        waiting = await live.tell("and me?")
        status = await live.ask("/status")
        assert status.startswith("Working for 0 s: thinking, step 1.")
        assert "Waiting: 1 message." in status
        assert "/compress" in await live.ask("/help")
        assert await live.ask("hi", chat="another") == "echo: hi"
        assert (await live.ask("/stop")).startswith("Stopping.")
        assert (await live.answer(waiting)).text == "echo: and me?"
        assert live.adapter.answer_to(hung) is None
        assert STOPPED in live.adapter.shown("c", "notice")
        assert await live.ask("/status") != status
        assert live.model.closed_early == 1
        assert await live.ask("/stop") == "Nothing is running."


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
        assert "running tools (slow, clock)" in await live.ask("/status")
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
        assert "compacting" in await live.ask("/status")
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
    config = config_in(tmp_path)
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


# -- limits of a turn --------------------------------------------------------------------------


async def test_a_silent_turn_ends_at_the_inactivity_limit(tmp_path: Path, clock: ManualClock) -> None:
    gate = Gate()
    model = FakeModel(in_turn(Say(first="Half an ans", text="wer", gate=gate)))
    async with running(tmp_path, clock=clock, model=model) as live:
        await live.tell("hello")
        await gate.until_waiting()
        await clock.advance(599)
        assert gate.waiting == 1
        await clock.advance(1)
        await live.adapter.until(lambda: live.adapter.shown("c", "error"))
        assert live.adapter.shown() == [
            "Half an ans",
            "I ended this turn because nothing happened for 10 minutes; ask again, perhaps in parts.",
        ]
        assert await live.ask("again") == "echo: again"
        assert live.model.spoken()[1] == ("assistant", "Half an ans")


async def test_a_busy_turn_ends_at_its_deadline(tmp_path: Path, clock: ManualClock) -> None:
    gates = [Gate() for _ in range(8)]
    model = FakeModel(in_turn(*[Say(calls=[CLOCK], gate=gate) for gate in gates]))
    async with running(tmp_path, clock=clock, model=model) as live:
        event = await live.tell("work without end")
        for gate in gates[:3]:
            await gate.until_waiting()
            await clock.advance(500)
            gate.open()
        await gates[3].until_waiting()
        await clock.advance(300)
        assert (await live.answer(event)).text == (
            "I ended this turn because it was not finished for 30 minutes; ask again, perhaps in parts."
        )
        assert len(model.requests) == 4
        model.script = echo
        assert await live.ask("again") == "echo: again"


async def test_a_model_that_only_calls_tools_is_asked_for_words_at_the_last_step(tmp_path: Path) -> None:
    model = FakeModel(lambda *_: Say(calls=[CLOCK]))
    async with running(tmp_path, config=config_in(tmp_path, turns=Turns(max_steps=4)), model=model) as live:
        assert await live.ask("go") == NO_WORDS_LEFT
        assert [request.tool_choice for request in model.requests] == ["auto", "auto", "auto", "none"]
        assert model.spoken()[-1] == ("user", OUT_OF_STEPS)
        model.script = echo
        assert await live.ask("go on") == "echo: go on"
        assert OUT_OF_STEPS not in [text for _, text in model.spoken()]


# -- many messages, many lanes -----------------------------------------------------------------


async def test_a_full_lane_refuses_with_a_sentence_and_takes_messages_again(tmp_path: Path) -> None:
    gate = Gate()
    config = config_in(tmp_path, turns=Turns(lane_cap=3))
    async with running(tmp_path, config=config, model=FakeModel(in_turn(Say(text="one!", gate=gate)))) as live:
        taken = [await live.tell("one"), await live.tell("two"), await live.tell("three")]
        refused = live.adapter.inbound("four")
        assert [each.status for each in await live.adapter.receive(refused)] == ["refused"]
        assert (await live.adapter.receive(refused))[0].status != "new", "a redelivery is not taken either"
        await live.adapter.until(lambda: FULL in live.adapter.shown("c", "notice"))
        assert await live.ask("hi", chat="another") == "echo: hi"
        assert "Waiting: 2" in await live.ask("/status")
        gate.open()
        for event in taken:
            await live.answer(event)
        assert await live.ask("five") == "echo: five"
        assert live.adapter.shown("c", "notice").count(FULL) == 1
        assert "four" not in await transcript(live)


async def test_a_full_lane_makes_a_pausing_adapter_wait(tmp_path: Path) -> None:
    gate = Gate()
    adapter = FakeAdapter(limits=Limits(trusted=True, pauses_when_full=True))
    config = config_in(tmp_path, turns=Turns(lane_cap=2))
    model = FakeModel(in_turn(Say(text="one!", gate=gate)))
    async with running(tmp_path, config=config, adapter=adapter, model=model) as live:
        events = [await live.tell("one"), await live.tell("two")]
        late = adapter.inbound("three")
        assert (await adapter.receive(late))[0].status == "full"
        gate.open()
        for event in events:
            await live.answer(event)
        assert (await adapter.receive(late))[0].status == "new"
        assert (await live.answer(late.event_id)).text == "echo: three"
        assert FULL not in adapter.shown()


async def test_order_holds_in_every_lane_and_no_lane_runs_two_turns_at_once(tmp_path: Path) -> None:
    rng = random.Random(7)
    running_now: Counter[str] = Counter()
    most: Counter[str] = Counter()

    class Watching(FakeModel):
        async def stream(self, spec: Any, request: Any) -> Any:
            chat = text_of(request.messages[-1]).split(" ")[0]
            running_now[chat] += 1
            running_now["all"] += 1
            for name in (chat, "all"):
                most[name] = max(most[name], running_now[name])
            for _ in range(rng.randrange(4)):
                await asyncio.sleep(0)
            async for event in super().stream(spec, request):
                yield event
            running_now[chat] -= 1
            running_now["all"] -= 1

    chats = [f"chat{number}" for number in range(25)]
    lines = [(chat, number) for number in range(8) for chat in chats]
    config = config_in(tmp_path, turns=Turns(concurrent=6))
    async with running(tmp_path, config=config, model=Watching()) as live:
        inbounds = [live.adapter.inbound(f"{chat} {number}", chat=chat) for chat, number in lines]
        for start in range(0, len(inbounds), 40):
            batch = inbounds[start : start + 40]
            await live.adapter.receive(*batch)
            await live.adapter.receive(*rng.sample(batch, 10))  # redelivered: no-ops
        await live.quiet()
        for chat in chats:
            assert live.adapter.shown(chat, "reply") == [f"echo: {chat} {number}" for number in range(8)]
            said = await transcript(live, chat=chat)
            assert said[::2] == [f"{chat} {number}" for number in range(8)]
    assert {most[chat] for chat in chats} == {1}
    assert 1 < most["all"] <= 6


async def test_rows_of_a_chat_are_shown_in_order_whatever_the_platform_does(tmp_path: Path) -> None:
    from gateway.errors import Ambiguous, DeliveryRefused, Disconnected, RateLimited

    clock = ManualClock()
    async with running(tmp_path, clock=clock) as live:
        live.adapter.failures = [
            Disconnected("no network"),
            RateLimited("slow down", retry_after=7),
            Ambiguous("no answer"),
            ValueError("a bug of the adapter"),
        ]
        events = [await live.tell(f"message {number}") for number in range(3)]
        while live.adapter.failures or len(live.adapter.sent) < 3:
            await clock.advance(60)
            await asyncio.sleep(0.005)
        assert [row.answers for row in live.adapter.sent] == events
        live.adapter.failures = [DeliveryRefused("the message is forbidden")]
        event = await live.tell("and one that is refused")
        shown = await live.answer(event)
        assert shown.kind == "error"
        assert "fake refused it: the message is forbidden" in shown.text


# -- stopping the program ----------------------------------------------------------------------


class Counting(SqliteStore):
    claims = 0

    async def claim_next(self, worker: str) -> Claim:
        self.claims += 1
        return await super().claim_next(worker)


async def test_a_stopping_gateway_finishes_what_runs_and_begins_nothing_new(tmp_path: Path) -> None:
    config = config_in(tmp_path)
    assert config.store.sqlite_path is not None
    clock = ManualClock()
    store = Counting(config.store.sqlite_path, clock=clock)
    gate = Gate()
    async with running(
        tmp_path, config=config, store=store, clock=clock, model=FakeModel(in_turn(Say(text="done", gate=gate)))
    ) as live:
        event = await live.tell("finish this")
        await gate.until_waiting()
        second = await live.tell("not this")
        live.gateway.stop()
        await clock.settle()
        other = await live.tell("nor this", chat="another")
        before = store.claims
        for _ in range(40):
            await asyncio.sleep(0.002)
        assert store.claims - before <= 2, "lanes are not claimed and given back over and over"
        gate.open()
        assert (await live.answer(event)).text == "done"
        assert len(live.model.requests) == 1
    async with running(tmp_path) as live:
        assert (await live.answer(second)).text == "echo: not this"
        assert (await live.answer(other)).text == "echo: nor this"


async def test_a_turn_cut_short_by_the_stop_of_the_program_goes_on_at_the_next_start(tmp_path: Path) -> None:
    gate = Gate()
    clock = ManualClock()
    model = FakeModel(in_turn(Say(calls=[CLOCK]), Say(text="never", gate=gate)))
    async with running(tmp_path, clock=clock, model=model) as live:
        event = await live.tell("look at the clock")
        await gate.until_waiting()
    assert live.adapter.answer_to(event) is None
    async with running(tmp_path, model=FakeModel(in_turn(Say(text="it is late")))) as live:
        assert (await live.answer(event)).text == "it is late"
        assert [role for role, _ in live.model.spoken()] == ["user", "assistant", "tool"]
        said = await transcript(live)
        assert said[0] == "look at the clock"
        assert said[-1] == "it is late"
        assert len(said) == 4
        assert all(one != other for one, other in pairwise(said))
