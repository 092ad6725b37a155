"""Limits of turns, full lanes, many lanes at once, and the end of the program."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from gateway.agent.asking import NO_WORDS_LEFT, OUT_OF_STEPS
from gateway.domain.adapter import Limits
from gateway.domain.chat import Outbound
from gateway.domain.message import text_of
from gateway.domain.turn import SessionSettings, TurnSettings
from gateway.runtime.clock import SystemClock
from gateway.runtime.structs import replace
from gateway.store.records import Arrival, Claim
from gateway.store.sqlite.backend import SqliteStore
from gateway.turns.admission import FULL
from tests.support.fakes import ManualClock
from tests.support.gateway import (
    FakeAdapter,
    FakeModel,
    Gate,
    Live,
    Say,
    config_in,
    echo,
    in_turn,
    running,
)

CLOCK = ("clock", "{}")


async def transcript(live: Live, **where: Any) -> list[str]:
    tip = await live.tip(**where)
    return [] if tip is None else [text_of(m) for m in await live.store.transcript(tip)]


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
            "I gave up on this answer because nothing happened for 10 minutes. Ask again, perhaps in smaller parts.",
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
            "I gave up on this answer because it was not finished for 30 minutes. Ask again, perhaps in smaller parts."
        )
        assert len(model.requests) == 4
        model.script = echo
        assert await live.ask("again") == "echo: again"


async def test_a_model_that_only_calls_tools_is_asked_for_words_at_the_last_step(tmp_path: Path) -> None:
    model = FakeModel(lambda *_: Say(calls=[CLOCK]))
    async with running(tmp_path, config=config_in(tmp_path, turns=TurnSettings(max_steps=4)), model=model) as live:
        assert await live.ask("go") == NO_WORDS_LEFT
        assert [request.tool_choice for request in model.requests] == ["auto", "auto", "auto", "none"]
        assert model.spoken()[-1] == ("user", OUT_OF_STEPS)
        model.script = echo
        assert await live.ask("go on") == "echo: go on"
        assert OUT_OF_STEPS not in [text for _, text in model.spoken()]


# -- many messages, many lanes -----------------------------------------------------------------


async def test_a_flood_over_the_cap_of_a_lane_is_told_of_once_in_a_while(tmp_path: Path, clock: ManualClock) -> None:
    gate = Gate()
    config = config_in(tmp_path, turns=TurnSettings(lane_cap=3))
    model = FakeModel(in_turn(Say(text="one!", gate=gate)))
    async with running(tmp_path, config=config, model=model, clock=clock) as live:
        for _ in range(3):
            await live.tell("work")
        for notices in (1, 2):
            flood = [live.adapter.inbound(f"more {number}") for number in range(50)]
            assert {each.status for each in await live.adapter.receive(*flood)} == {"refused"}
            await live.adapter.receive(live.adapter.inbound("/status"))
            await live.adapter.until(lambda count=notices: len(live.adapter.shown("c", "command")) == count)
            assert live.adapter.shown("c", "notice").count(FULL) == notices
            await clock.advance(31.0)
        gate.open()


async def test_a_flood_of_commands_that_wait_in_no_lane_is_told_of_once_in_a_while(
    tmp_path: Path, clock: ManualClock
) -> None:
    """Else their answers hold up everything else that the chat is to be shown, for hours."""
    store = NotesRefusals(tmp_path)
    async with running(tmp_path, store=store, clock=clock) as live:
        for notices in (1, 2):
            flood = [live.adapter.inbound(("/help", "/status")[number % 2]) for number in range(300)]
            said = [each.status for batch in (flood[:7], flood[7:]) for each in await live.adapter.receive(*batch)]
            assert said == ["new"] * 20 + ["refused"] * 280
            for urgent in ("/stop", "/approve", "/deny"):
                assert await live.ask(urgent)
            assert await live.ask("hello") == "echo: hello"
            assert await live.ask("/status", chat="another")
            assert live.adapter.shown("c", "command").count("Nothing is running.") == notices
            assert len(live.adapter.shown("c", "command")) == 23 * notices
            assert live.adapter.shown("c", "notice").count(FULL) == notices
            assert len(store.refused) == notices
            await clock.advance(61.0)


async def test_commands_that_were_missed_wait_and_those_of_a_pipe_are_all_answered(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        missed = [replace(live.adapter.inbound("/version"), can_wait=True) for _ in range(30)]
        said = [each.status for each in await live.adapter.receive(*missed)]
        assert said == ["new"] * 20 + ["full"] * 10
    pipe = FakeAdapter(limits=Limits(trusted=True, pauses_when_full=True))
    async with running(tmp_path, adapter=pipe) as live:
        piped = [pipe.inbound("/version") for _ in range(30)]
        assert {each.status for each in await pipe.receive(*piped)} == {"new"}


async def test_an_adapter_is_told_how_long_a_full_lane_stays_full_and_the_lane_rests_so_long(
    tmp_path: Path, clock: ManualClock
) -> None:
    """People who write too much take neither the reading nor the turns of everybody else."""
    gate = Gate()
    config = config_in(tmp_path, turns=TurnSettings(lane_cap=2))
    model = FakeModel(in_turn(Say(text="one!", gate=gate)))
    async with running(tmp_path, config=config, model=model, clock=clock) as live:
        first = await live.tell("one")
        await gate.until_waiting()
        second = live.adapter.inbound("two")
        accepted = await live.adapter.receive(second, live.adapter.inbound("three"))
        assert [(each.status, each.full_for) for each in accepted] == [("new", 0.0), ("refused", 1.0)]
        gate.open()
        assert (await live.answer(first)).text == "one!"
        assert await live.ask("hi", chat="another") == "echo: hi"
        assert "echo: two" not in live.adapter.shown("c", "reply")
        await clock.advance(1.0)
        assert (await live.answer(second.event_id)).text == "echo: two"


class NotesRefusals(SqliteStore):
    """Notes which events were stored as refused."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "legato.db", clock=SystemClock(), concurrency=256)
        self.refused: list[str] = []

    async def refuse(self, arrival: Arrival, notice: Outbound) -> tuple[Outbound, ...]:
        self.refused.append(arrival.inbound.text)
        return await super().refuse(arrival, notice)


async def test_a_flood_over_the_cap_of_a_lane_stores_nothing_but_the_notice(tmp_path: Path) -> None:
    """Else the one who writes too much holds up everybody else's messages, and fills the disk."""
    gate, store = Gate(), NotesRefusals(tmp_path)
    config = config_in(tmp_path, turns=TurnSettings(lane_cap=3))
    model = FakeModel(in_turn(Say(text="one!", gate=gate)))
    async with running(tmp_path, config=config, store=store, model=model) as live:
        for _ in range(3):
            await live.tell("work")
        flood = [live.adapter.inbound(f"more {number}") for number in range(150)]
        for batch in (flood[:50], flood[50:], flood[:50]):
            assert {each.status for each in await live.adapter.receive(*batch)} <= {"refused", "duplicate"}
        assert store.refused == ["more 0"]
        gate.open()


async def test_a_full_lane_refuses_with_a_sentence_and_takes_messages_again(tmp_path: Path) -> None:
    gate = Gate()
    config = config_in(tmp_path, turns=TurnSettings(lane_cap=3))
    async with running(tmp_path, config=config, model=FakeModel(in_turn(Say(text="one!", gate=gate)))) as live:
        taken = [await live.tell("one"), await live.tell("two"), await live.tell("three")]
        refused = live.adapter.inbound("four")
        assert [each.status for each in await live.adapter.receive(refused)] == ["refused"]
        assert (await live.adapter.receive(refused))[0].status != "new", "a redelivery is not taken either"
        await live.adapter.until(lambda: FULL in live.adapter.shown("c", "notice"))
        assert await live.ask("hi", chat="another") == "echo: hi"
        assert "are waiting for an answer: 2." in await live.ask("/status")
        gate.open()
        for event in taken:
            await live.answer(event)
        assert await live.ask("five") == "echo: five"
        assert live.adapter.shown("c", "notice").count(FULL) == 1
        assert "four" not in await transcript(live)


async def test_nobody_fills_a_lane_that_others_share(tmp_path: Path) -> None:
    gate, adapter = Gate(), FakeAdapter(limits=Limits(trusted=True))
    model = FakeModel(in_turn(Say(text="done", gate=gate), then=echo))
    config = config_in(tmp_path, turns=TurnSettings(lane_cap=8), sessions=SessionSettings(groups="shared"))
    place: dict[str, Any] = {"chat": "g", "chat_type": "group"}

    def says(user: str, *texts: str) -> list[Any]:
        return [adapter.inbound(text, user=user, **place) for text in texts]

    async with running(tmp_path, config=config, model=model, adapter=adapter) as live:
        work, one, two, three, four = says("anna", "work", "one", "two", "three", "four")
        await adapter.receive(work)
        await gate.until_waiting()
        taken = await adapter.receive(one, two, three)
        assert [each.status for each in taken] == ["new", "new", "refused"]
        assert [each.status for each in await adapter.receive(four, two)] == ["refused", "duplicate"]
        (bobs,) = says("bob", "and me")
        assert [each.status for each in await adapter.receive(bobs)] == ["new"]
        gate.open()
        assert (await live.answer(bobs.event_id)).text == "echo: [bob] and me"
        assert FULL in adapter.shown("g", "notice")
        assert await live.ask("five", user="anna", **place) == "echo: [anna] five"


async def test_a_full_lane_makes_a_pausing_adapter_wait(tmp_path: Path) -> None:
    gate = Gate()
    adapter = FakeAdapter(limits=Limits(trusted=True, pauses_when_full=True))
    config = config_in(tmp_path, turns=TurnSettings(lane_cap=2))
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


async def test_a_message_that_can_wait_is_not_refused_by_a_full_lane(tmp_path: Path) -> None:
    gate = Gate()
    config = config_in(tmp_path, turns=TurnSettings(lane_cap=1))
    async with running(tmp_path, config=config, model=FakeModel(in_turn(Say(text="one!", gate=gate)))) as live:
        first = await live.tell("one")
        await gate.until_waiting()
        late = replace(live.adapter.inbound("two"), can_wait=True)
        assert (await live.adapter.receive(late))[0].status == "full"
        gate.open()
        await live.answer(first)
        assert (await live.adapter.receive(late))[0].status == "new"
        assert (await live.answer(late.event_id)).text == "echo: two"
        assert FULL not in live.adapter.shown()


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
    config = config_in(tmp_path, turns=TurnSettings(concurrent=6))
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
    from gateway.runtime.errors import Ambiguous, DeliveryRefused, Disconnected, RateLimited

    clock = ManualClock()
    async with running(tmp_path, clock=clock) as live:
        live.adapter.failures = [
            Disconnected("no network"),
            RateLimited("slow down", retry_after=7),
            Ambiguous("no answer"),
            ValueError("a bug of the adapter"),
        ]
        events = [await live.tell(f"message {number}") for number in range(3)]

        def replies() -> list[str | None]:
            return [row.answers for row in live.adapter.sent if row.kind == "reply"]

        await live.advance_until(lambda: not live.adapter.failures and len(replies()) == 3, seconds=5.0)
        assert replies() == events
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


async def test_who_will_not_wait_for_a_running_turn_finds_it_at_the_next_start(tmp_path: Path) -> None:
    gate = Gate()
    async with running(tmp_path, model=FakeModel(in_turn(Say(text="never", gate=gate)))) as live:
        event = await live.tell("how long is the river?")
        await gate.until_waiting()
        live.gateway.stop(grace=0)
    async with running(tmp_path) as live:
        assert (await live.answer(event)).text == "echo: how long is the river?"
