"""A crash in the middle of a command: nothing is done twice, and nothing is left undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.domain.message import text_of
from gateway.runtime.points import Point
from tests.support.gateway import Gate, KillAt, Live, RecordingEngine, Say, in_turn, running


async def transcript(live: Live, **where: str) -> list[str]:
    """The texts of the present session."""
    tip = await live.tip(**where)
    return [] if tip is None else [text_of(m) for m in await live.store.transcript(tip)]


REPLAYED = {
    "/new": [],
    "/undo": ["one", "echo: one", "two", "echo: two"],
    "/undo 2": ["one", "echo: one"],
    "/branch Copy": ["one", "echo: one", "two", "echo: two", "three", "echo: three"],
    "/resume 1": ["zero", "echo: zero"],
    "/retry": ["one", "echo: one", "two", "echo: two", "three", "echo: three"],
    "/compress": ["notes on what was said", "echo: three"],
}


PASSED: list[tuple[str, Point]] = [("/compress", "turn.claimed"), ("/compress", "compaction.published")]
PASSED += [(name, "turn.claimed") for name in REPLAYED if name != "/compress"]
PASSED += [(name, "session.ended") for name in REPLAYED if name != "/compress"]
PASSED += [(name, "session.hook_called") for name in REPLAYED if name != "/compress"]


@pytest.mark.parametrize(("command", "point"), PASSED)
async def test_a_command_cut_short_by_a_crash_acts_once(tmp_path: Path, command: str, point: Point) -> None:
    kill = KillAt(point, nth=0)
    async with running(tmp_path, points=kill, engine=lambda: RecordingEngine([])) as live:
        await live.ask("zero")
        await live.ask("/new")
        for text in ("one", "two", "three"):
            await live.ask(text)
        before = len(await live.store.sessions(None, 100))
        kill.arm()
        event = await live.tell(command)
        await kill.passed.wait()
    async with running(tmp_path, engine=lambda: RecordingEngine([])) as live:
        answer = await live.answer(event)
        assert answer.kind in ("command", "reply"), answer.text
        await live.quiet()
        assert await transcript(live) == REPLAYED[command]
        assert len(await live.store.sessions(None, 100)) == before + 1
        assert len([row for row in live.adapter.sent if row.answers == event]) == 1


QUEUED = {
    "/new": [],
    "/undo": [],
    "/branch Copy": ["first", "slow"],
    "/resume 2": ["zero", "echo: zero"],
    "/retry": ["first", "echo: first"],
}


@pytest.mark.parametrize("command", QUEUED)
async def test_a_queued_command_that_never_began_is_not_taken_for_done(tmp_path: Path, command: str) -> None:
    """The session before it opened after the command was accepted, which must not look like its work."""
    gate = Gate()
    kill = KillAt("turn.claimed", nth=0)
    async with running(tmp_path, points=kill) as live:
        await live.ask("zero")
        await live.ask("/new")
        live.model.script = in_turn(Say(text="slow", gate=gate))
        batch = [live.adapter.inbound(text) for text in ("first", "/branch", command)]
        await live.adapter.receive(*batch)
        await gate.until_waiting()
        kill.arm(2)  # at the third item, the command
        gate.open()
        await kill.passed.wait()
    async with running(tmp_path) as live:
        await live.answer(batch[-1].event_id)
        await live.quiet()
        assert await transcript(live) == QUEUED[command]
        assert len(await live.store.sessions(None, 100)) == 4
