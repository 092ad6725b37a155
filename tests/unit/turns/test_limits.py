"""What ends a turn early: its deadline, no sign of life, and people."""

from __future__ import annotations

from typing import Any, cast

import pytest

from gateway.agent.running import RunningTurn, RunningTurns
from gateway.domain.chat import SessionKey, Source
from gateway.domain.turn import STOPPED
from gateway.store.records import SignalKind
from gateway.turns.limits import INTERRUPTED, TurnTime
from tests.support.fakes import ManualClock

KEY = SessionKey(platform="fake", chat="c")


def turn_time(clock: ManualClock) -> TurnTime:
    """A turn that has 100 seconds, and may be silent for 30."""
    turn = RunningTurn(
        key=KEY,
        source=Source(platform="fake", chat="c", chat_type="direct", user="u"),
        started_at=clock.monotonic(),
        alive_at=clock.monotonic(),
        end=print,
    )
    turns = RunningTurns(background=cast(Any, None))
    return TurnTime(turn=turn, running_turns=turns, clock=clock, deadline=100.0, inactivity=30.0)


@pytest.mark.parametrize(
    ("signs", "ended_at", "why"),
    [
        ([], 30.0, "because nothing happened for 30 seconds"),
        ([20.0], 50.0, "because nothing happened for 30 seconds"),
        ([29.0, 50.0, 75.0, 90.0], 100.0, "because it was not finished for 100 seconds"),
    ],
)
async def test_a_turn_ends_at_its_deadline_or_without_a_sign_of_life(
    signs: list[float], ended_at: float, why: str
) -> None:
    clock = ManualClock()
    time = turn_time(clock)

    async def turn() -> None:
        async with time:
            for at in signs:
                await clock.advance(at - clock.monotonic())
                time.alive()
            await clock.advance(ended_at - clock.monotonic() - 0.1)
            await clock.advance(0.1)
            await clock.sleep(1_000.0)

    with pytest.raises(TimeoutError):
        await turn()
    assert clock.monotonic() == pytest.approx(ended_at)
    outcome, told = time.why_ended()
    assert outcome == "failed"
    assert why in told


async def test_who_waits_for_a_person_needs_no_sign_of_life_and_what_is_over_is_not_stopped() -> None:
    clock = ManualClock()
    time = turn_time(clock)
    async with time:
        time.patient()
        await clock.advance(99.0)
        assert time.running_turns.of(KEY) is time.turn
        time.over()
        time.running_turns.deliver(KEY, "stop")
        await clock.advance(0.5)
    assert time.running_turns.of(KEY) is None


@pytest.mark.parametrize(("signal", "told"), [("stop", STOPPED), ("interrupt", INTERRUPTED)])
async def test_a_signal_ends_it_at_once_and_no_sign_of_life_puts_that_off(signal: SignalKind, told: str) -> None:
    clock = ManualClock()
    time = turn_time(clock)

    async def turn() -> None:
        async with time:
            await clock.advance(5.0)
            time.running_turns.deliver(KEY, signal)
            time.alive()
            await clock.sleep(1_000.0)

    with pytest.raises(TimeoutError):
        await turn()
    assert time.stopped_at == clock.now()
    assert time.why_ended() == ("stopped", told)
