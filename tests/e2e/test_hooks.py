"""The hooks of a context engine in the life of sessions, and the expiry of sessions."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway.app.config import Config
from gateway.domain.expiry import ExpiryPolicy
from gateway.domain.turn import SessionSettings
from gateway.runtime.points import Point
from gateway.store.records import EXPIRY_CLAIM
from gateway.turns.turn import PUT_AWAY
from tests.support.fakes import ManualClock
from tests.support.gateway import (
    FEW_TOOLS,
    FakeAdapter,
    FakeModel,
    Gate,
    KillAt,
    Live,
    RecordingEngine,
    Say,
    config_in,
    in_turn,
    running,
)

WEEK = 7 * 86_400.0
LONG = "a sentence that takes some room in the window " * 20


class Ear:
    """Everything that engines were told, over restarts too."""

    def __init__(self) -> None:
        self.heard: list[tuple[Any, ...]] = []

    def engine(self, *, limit: int = 10**9) -> Any:
        """A factory of engines that write here."""
        return lambda: RecordingEngine(self.heard, limit=limit)

    def of(self, kind: str) -> list[tuple[Any, ...]]:
        """Return the calls of one hook."""
        return [told for told in self.heard if told[0] == kind]


@pytest.fixture
def ear() -> Ear:
    return Ear()


def expiring(folder: Path, **expiry: Any) -> Config:
    return config_in(folder, sessions=SessionSettings(expiry=ExpiryPolicy(**expiry)))


async def sweep(live: Live) -> None:
    await live.gateway.upkeep.expiry.sweep()
    await live.quiet()


# -- real ends and continuations ---------------------------------------------------------------


async def test_a_reset_ends_the_session_once_and_resets_the_engine(tmp_path: Path, ear: Ear) -> None:
    async with running(tmp_path, engine=ear.engine()) as live:
        await live.ask("hello")
        first = await live.tip()
        assert first is not None
        await live.ask("/reset")
        second = await live.tip()
        assert second is not None
        assert second.id != first.id
    assert ear.of("end") == [("end", first.id, ["hello", "echo: hello"])]
    assert ear.of("reset") == [("reset",)]
    assert ear.of("start") == [("start", first.id, None, "new"), ("start", second.id, None, "reset")]
    assert ear.heard.index(ear.of("end")[0]) < ear.heard.index(("reset",))


async def test_new_is_reset_by_another_name_and_does_nothing_in_a_fresh_session(tmp_path: Path, ear: Ear) -> None:
    async with running(tmp_path, engine=ear.engine()) as live:
        await live.ask("hello")
        await live.ask("/new")
        assert "already" in await live.ask("/new")
    assert len(ear.of("end")) == len(ear.of("reset")) == 1


async def test_a_manual_compaction_is_no_end_but_a_start_of_the_child(tmp_path: Path, ear: Ear) -> None:
    async with running(tmp_path, engine=ear.engine()) as live:
        await live.ask("hello")
        await live.ask("and again")
        parent = await live.tip()
        assert "Compressed: 4 → 2 messages" in await live.ask("/compress greetings")
        child = await live.tip()
        assert parent is not None
        assert child is not None
    assert ear.of("end") == ear.of("reset") == []
    assert ear.of("compress") == [("compress", 4, "greetings")]
    assert ear.of("start")[1:] == [("start", child.id, parent.id, "compression")]


async def test_an_automatic_compaction_is_no_end_but_a_start_of_the_child(tmp_path: Path, ear: Ear) -> None:
    model = FakeModel(in_turn(Say(text=LONG, prompt=900)))
    config = config_in(tmp_path, tools=FEW_TOOLS)
    async with running(tmp_path, config=config, engine=ear.engine(limit=1_000), model=model) as live:
        await live.ask(LONG)
        parent = await live.tip()
        await live.ask("go on")
        child = await live.tip()
        assert parent is not None
        assert child is not None
        assert child.parent_id == parent.id
        assert (await live.store.session(parent.id)).end_reason == "compression"
    assert ear.of("end") == ear.of("reset") == []
    assert ear.of("start")[1:] == [("start", child.id, parent.id, "compression")]


async def test_resume_undo_and_branch_end_the_present_session_for_good(tmp_path: Path, ear: Ear) -> None:
    async with running(tmp_path, engine=ear.engine()) as live:
        await live.ask("hello")
        first = await live.tip()
        await live.ask("/branch")
        branch = await live.tip()
        await live.ask("/undo")
        undone = await live.tip()
        assert first is not None
        assert branch is not None
        assert undone is not None
        await live.ask(f"/resume {first.id}")
        reasons = [(await live.store.session(each.id)).end_reason for each in (first, branch, undone)]
    assert reasons == ["switched", "undone", "switched"]
    assert [told[1] for told in ear.of("end")] == [first.id, branch.id, undone.id]
    assert ear.of("reset") == []


async def test_an_end_after_a_restart_is_told_to_a_new_instance_with_the_whole_transcript(
    tmp_path: Path, ear: Ear
) -> None:
    async with running(tmp_path, engine=ear.engine()) as live:
        await live.ask("hello")
        first = await live.tip()
        assert first is not None
    async with running(tmp_path, engine=ear.engine()) as live:
        await live.ask("/reset")
    assert ear.of("end") == [("end", first.id, ["hello", "echo: hello"])]
    assert ("start", first.id, None, "resume") in ear.heard


# -- crashes around the end --------------------------------------------------------------------


async def test_a_crash_between_the_end_and_its_hook_calls_the_hook_once_at_the_next_start(
    tmp_path: Path, ear: Ear
) -> None:
    kill = KillAt("session.ended")
    async with running(tmp_path, engine=ear.engine(), points=kill) as live:
        await live.ask("hello")
        first = await live.tip()
        assert first is not None
        event = await live.tell("/reset")
        await kill.passed.wait()
    assert ear.of("end") == []
    async with running(tmp_path, engine=ear.engine()) as live:
        assert "fresh session" in (await live.answer(event)).text
        await live.quiet()
    assert ear.of("end") == [("end", first.id, ["hello", "echo: hello"])]
    assert ear.of("reset") == [("reset",)]
    async with running(tmp_path, engine=ear.engine()) as live:
        assert await live.ask("still there?") == "echo: still there?"
    assert len(ear.of("end")) == 1


async def test_killed_inside_the_hook_it_is_called_at_least_once_and_never_after_it_was_noted(
    tmp_path: Path, ear: Ear
) -> None:
    kill = KillAt("session.hook_called")
    async with running(tmp_path, engine=ear.engine(), points=kill) as live:
        await live.ask("hello")
        event = await live.tell("/reset")
        await kill.passed.wait()
    for _ in range(2):
        async with running(tmp_path, engine=ear.engine()) as live:
            await live.quiet()
    assert len(ear.of("end")) == 2
    assert len({told[1] for told in ear.of("end")}) == 1
    assert event


@pytest.mark.parametrize("point", ["turn.claimed", "session.ended"])
async def test_an_expiry_cut_short_by_a_crash_ends_once_and_tells_once(
    tmp_path: Path, ear: Ear, clock: ManualClock, point: Point
) -> None:
    config = expiring(tmp_path)
    async with running(tmp_path, config=config, engine=ear.engine(), clock=clock) as live:
        await live.ask("hello")
    await clock.advance(WEEK)
    kill = KillAt(point)
    before, after = FakeAdapter(), FakeAdapter()
    async with running(tmp_path, config=config, engine=ear.engine(), clock=clock, points=kill, adapter=before) as live:
        await kill.passed.wait()
    async with running(tmp_path, config=config, engine=ear.engine(), clock=clock, adapter=after) as live:
        await live.quiet()
        assert await live.tip() is None
    assert len(ear.of("end")) == 1
    # Told before the crash or after it, or twice as the same message if its delivery was cut short.
    assert {row.id: row.text for row in (*before.sent, *after.sent)} == {f"o_{ear.of('end')[0][1]}": PUT_AWAY}


# -- expiry ------------------------------------------------------------------------------------


async def test_an_idle_session_in_memory_ends_once_and_its_chat_is_told_once(
    tmp_path: Path, ear: Ear, clock: ManualClock
) -> None:
    async with running(tmp_path, engine=ear.engine(), clock=clock) as live:
        await live.ask("hello")
        first = await live.tip()
        assert first is not None
        await clock.advance(WEEK - 1)
        await sweep(live)
        assert ear.of("end") == []
        await clock.advance(1)
        for _ in range(3):
            await sweep(live)
        assert live.adapter.shown("c", "notice") == [PUT_AWAY]
        assert (await live.store.session(first.id)).end_reason == "expired"
        assert await live.ask("anybody here?") == "echo: anybody here?"
        assert live.model.spoken() == [("user", "anybody here?")]
        second = await live.tip()
        assert second is not None
        assert second.parent_id is None
    assert ear.of("end") == [("end", first.id, ["hello", "echo: hello"])]


async def test_sessions_that_became_due_while_the_process_was_down_end_at_the_start(
    tmp_path: Path, ear: Ear, clock: ManualClock
) -> None:
    chats = [f"chat {number}" for number in range(12)]
    async with running(tmp_path, engine=ear.engine(), clock=clock) as live:
        for chat in chats:
            await live.ask("hello", chat=chat)
    await clock.advance(2 * WEEK)
    async with running(tmp_path, engine=ear.engine(), clock=clock) as live:
        await live.quiet()
        assert [live.adapter.shown(chat) for chat in chats] == [[PUT_AWAY]] * len(chats)
    assert len(ear.of("end")) == len({told[1] for told in ear.of("end")}) == len(chats)


async def test_a_message_after_the_deadline_but_before_the_sweep_ends_the_session_by_the_same_path(
    tmp_path: Path, ear: Ear, clock: ManualClock
) -> None:
    async with running(tmp_path, engine=ear.engine(), clock=clock) as live:
        await live.ask("hello")
        first = await live.tip()
        assert first is not None
        await clock.advance(WEEK)
        assert await live.ask("I am back") == "echo: I am back"
        assert live.model.spoken() == [("user", "I am back")]
        await sweep(live)
        assert live.adapter.shown("c", "notice") == [PUT_AWAY]
        assert (await live.store.session(first.id)).end_reason == "expired"
    assert ear.of("end") == [("end", first.id, ["hello", "echo: hello"])]


@pytest.mark.parametrize("first", ["message", "sweep"])
async def test_a_message_and_a_sweep_at_the_same_moment_end_the_session_once(
    tmp_path: Path, ear: Ear, clock: ManualClock, first: str
) -> None:
    async with running(tmp_path, engine=ear.engine(), clock=clock) as live:
        await live.ask("hello")
        await clock.advance(WEEK)
        inbound = live.adapter.inbound("I am back")
        both = [live.adapter.receive(inbound), live.gateway.upkeep.expiry.sweep()]
        await asyncio.gather(*(both if first == "message" else reversed(both)))
        assert (await live.answer(inbound.event_id)).text == "echo: I am back"
        await live.quiet()
        assert live.adapter.shown("c", "notice") == [PUT_AWAY]
        tip = await live.tip()
        assert tip is not None
        assert tip.message_count == 2
    assert len(ear.of("end")) == 1


async def test_a_session_with_a_running_turn_is_never_expired(tmp_path: Path, ear: Ear, clock: ManualClock) -> None:
    config = expiring(tmp_path, idle_minutes=1)
    gate = Gate()
    async with running(tmp_path, config=config, engine=ear.engine(), clock=clock) as live:
        await live.ask("hello")
        live.model.script = in_turn(Say(text="that took a while", gate=gate))
        event = await live.tell("think hard")
        await gate.until_waiting()
        await clock.advance(120)
        await live.gateway.upkeep.expiry.sweep()
        gate.open()
        assert (await live.answer(event)).text == "that took a while"
        await live.quiet()
        tip = await live.tip()
        assert tip is not None
        assert tip.message_count == 4
        assert ear.of("end") == []
        await clock.advance(EXPIRY_CLAIM + 61)  # and its end comes all the same, counted from the turn
        await sweep(live)
        assert await live.tip() is None
    assert len(ear.of("end")) == 1


async def test_a_daily_session_ends_at_the_hour_of_the_persons_zone(
    tmp_path: Path, ear: Ear, clock: ManualClock
) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    evening = datetime(2026, 3, 28, 23, 0, tzinfo=berlin)  # the night in which the clocks go forward
    due = datetime(2026, 3, 29, 4, 0, tzinfo=berlin)
    clock = ManualClock(now=evening.timestamp())
    config = expiring(tmp_path, mode="daily", daily_at="04:00", timezone="Europe/Berlin")
    async with running(tmp_path, config=config, engine=ear.engine(), clock=clock) as live:
        await live.ask("good night")
        await clock.advance(due.timestamp() - clock.now() - 1)
        await sweep(live)
        assert ear.of("end") == []
        await clock.advance(1)
        await sweep(live)
        assert len(ear.of("end")) == 1
        assert live.adapter.shown("c", "notice") == [PUT_AWAY]


async def test_nothing_is_said_where_notices_are_off_and_nothing_ends_where_expiry_is_off(
    tmp_path: Path, ear: Ear, clock: ManualClock
) -> None:
    quiet, never = tmp_path / "quiet", tmp_path / "never"
    quiet.mkdir()
    never.mkdir()
    async with running(quiet, config=expiring(quiet, notify=False), engine=ear.engine(), clock=clock) as live:
        await live.ask("hello")
        await clock.advance(WEEK)
        await sweep(live)
        assert len(ear.of("end")) == 1
        assert live.adapter.shown("c", "notice") == []
    async with running(never, config=expiring(never, mode="none"), engine=ear.engine(), clock=clock) as live:
        await live.ask("hello")
        await clock.advance(100 * WEEK)
        await sweep(live)
        assert len(ear.of("end")) == 1
        assert await live.tip() is not None


async def test_an_empty_session_is_left_alone(tmp_path: Path, ear: Ear, clock: ManualClock) -> None:
    async with running(tmp_path, engine=ear.engine(), clock=clock) as live:
        await live.ask("hello")
        await live.ask("/new")
        fresh = await live.tip()
        await clock.advance(WEEK)
        await sweep(live)
        await sweep(live)
        present = await live.tip()
        assert present is not None
        assert fresh is not None
        assert present.id == fresh.id
        assert live.adapter.shown("c", "notice") == []
    assert len(ear.of("end")) == 1


async def test_an_expired_session_can_be_taken_up_again(tmp_path: Path, ear: Ear, clock: ManualClock) -> None:
    async with running(tmp_path, engine=ear.engine(), clock=clock) as live:
        await live.ask("my name is Ada")
        await clock.advance(WEEK)
        await sweep(live)
        assert "I went back" in await live.ask("/resume 1")
        await live.ask("who am I?")
        assert live.model.spoken()[0] == ("user", "my name is Ada")


# -- engines that misbehave --------------------------------------------------------------------


async def test_an_engine_that_raises_in_every_hook_breaks_no_turn(tmp_path: Path) -> None:
    class Broken(RecordingEngine):
        def on_session_start(self, session_id: str, **info: Any) -> None:
            raise RuntimeError("start")

        def on_session_end(self, session_id: str, messages: Any) -> None:
            raise RuntimeError("end")

        def update_from_response(self, usage: Any) -> None:
            raise RuntimeError("usage")

        def should_compress(self, prompt_tokens: int | None = None) -> bool:
            raise RuntimeError("should")

        def dump_state(self) -> dict[str, Any]:
            raise RuntimeError("dump")

    async with running(tmp_path, engine=lambda: Broken([])) as live:
        assert await live.ask("hello") == "echo: hello"
        assert "fresh session" in await live.ask("/reset")
        assert await live.ask("again") == "echo: again"
