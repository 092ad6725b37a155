"""The crash laboratory's platform: what a process was told is what the verdict on repeated sends goes by."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.runtime.errors import Ambiguous, Disconnected
from tests.chaos.check import seen, send_repeats
from tests.chaos.check_store import Facts
from tests.chaos.drive import Evidence
from tests.chaos.excuses import Excuses
from tests.chaos.findings import Findings
from tests.chaos.schedule import make_schedule
from tests.chaos.script import Plan, make_plan
from tests.chaos.snapshot import Snapshot
from tests.chaos.socket_adapter import ANSWER_SECONDS, SocketAdapter
from tests.chaos.socket_platform import Send, SendFault, SocketPlatform
from tests.support.fakes import ManualClock
from tests.support.waiting import eventually

ROW = Outbound(
    id="o_1",
    key=SessionKey(platform="socket", chat="street", thread=None, user=None),
    to=ChatAddress(platform="socket", chat="street"),
    kind="notice",
    text="I am still working.",
)


@asynccontextmanager
async def street(folder: Path, *faults: SendFault | None) -> AsyncIterator[SocketPlatform]:
    """A platform whose sends go wrong in this order."""
    numbered = {number: fault for number, fault in enumerate(faults, start=1) if fault is not None}
    platform = SocketPlatform(folder / "platform", polls=True, rng=random.Random(0), faults=numbered)
    await platform.up()
    try:
        yield platform
    finally:
        await platform.aclose()


def adapter(platform: SocketPlatform, clock: ManualClock) -> SocketAdapter:
    return SocketAdapter(str(platform.path), process=0, clock=clock)


def facts(*sends: Send, state: str = "sent", answers: str | None = None) -> Facts:
    """A run of one process that made these sends of one row, and left it in this state."""
    left = Snapshot(
        messages={},
        transcripts={},
        inbox={},
        sessions={},
        outbox={ROW.id: (ROW.kind, ROW.text, answers, state)},
        compactions=[],
        tips={},
    )
    return Facts(Evidence(plan=a_plan(), folder=Path("/nonexistent"), sends=list(sends), snapshots=[left]))


def a_plan() -> Plan:
    return next(plan for plan in map(make_plan, range(100)) if plan.updates)


def excuse(first: Send, second: Send) -> str | None:
    """Return the excuse for a repetition where several processes serve."""
    return Excuses(Findings(schedule=make_schedule(0), folder=Path("/nonexistent"))).repeated_send(first, second)


async def test_an_answer_that_came_after_its_sender_had_given_up_was_not_heard(tmp_path: Path) -> None:
    clock = ManualClock()
    async with street(tmp_path, "slow") as platform:
        sending = asyncio.create_task(adapter(platform, clock).send(ROW))
        await eventually(lambda: platform.sends)
        await clock.advance(ANSWER_SECONDS)
        with pytest.raises(Ambiguous):
            await sending
        await adapter(platform, clock).send(ROW)
        await eventually(lambda: platform.sends[1].heard)

        assert [send.shown for send in platform.sends] == [True, True]
        assert list(send_repeats(facts(*platform.sends))) == []
        assert excuse(*platform.sends) == "send slow"


async def test_an_answer_on_its_way_while_the_platform_goes_down_was_not_heard(tmp_path: Path) -> None:
    clock = ManualClock()
    async with street(tmp_path, "slow") as platform:
        sending = asyncio.create_task(adapter(platform, clock).send(ROW))
        await eventually(lambda: platform.sends)
        await platform.down()
        with pytest.raises(Ambiguous):
            await sending
        await platform.up()
        await adapter(platform, clock).send(ROW)
        await eventually(lambda: platform.sends[1].heard)

        assert list(send_repeats(facts(*platform.sends))) == []


async def test_a_row_whose_answer_was_heard_and_that_is_sent_again_is_a_finding(tmp_path: Path) -> None:
    async with street(tmp_path, None, "slow") as platform:
        for number in range(2):
            await adapter(platform, ManualClock()).send(ROW)
            await eventually(lambda number=number: platform.sends[number].heard)

        (problem,) = send_repeats(facts(*platform.sends))
        assert "was shown by process 0 and again by 0" in problem
        assert excuse(*platform.sends) is None


async def test_what_the_platform_did_not_show_was_heard_of_too(tmp_path: Path) -> None:
    async with street(tmp_path, "unavailable") as platform:
        with pytest.raises(Disconnected):
            await adapter(platform, ManualClock()).send(ROW)

        await eventually(lambda: platform.sends[0].heard)


def test_who_was_killed_before_it_heard_an_answer_was_struck_once() -> None:
    unheard = Send(
        number=1,
        at=0.0,
        process=0,
        row=ROW.id,
        chat="street",
        kind="notice",
        text=ROW.text,
        answers=None,
        shown=False,
        fault="unavailable",
    )
    answers = a_plan().updates[0].id

    assert len(list(seen(facts(unheard, state="sending", answers=answers)))) == 1
    assert len(list(seen(facts(unheard, unheard, answers=answers)))) == 1, "what is in doubt is shown in the end"
    shown = replace(unheard, shown=True, heard=True, fault=None)
    assert list(seen(facts(unheard, shown, state="sent", answers=answers))) == []
