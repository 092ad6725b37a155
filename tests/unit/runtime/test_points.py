"""Points: each is passed on, and the time from the one before in the same task is measured."""

import asyncio

from gateway.runtime.metrics import Metrics
from gateway.runtime.points import Point, TimedPoints
from tests.support.fakes import ManualClock


async def test_the_time_between_two_points_of_a_task_is_measured() -> None:
    clock, metrics, passed = ManualClock(), Metrics(), list[Point]()
    points = TimedPoints(passed.append, clock, metrics)
    points("turn.claimed")
    await clock.advance(3.0)
    points("turn.model_called")
    await clock.advance(1.0)
    points("turn.finished")
    assert passed == ["turn.claimed", "turn.model_called", "turn.finished"]
    text = metrics.text()
    assert 'legato_phase_seconds_sum{point="turn.model_called"} 3.0' in text
    assert 'legato_phase_seconds_sum{point="turn.finished"} 1.0' in text
    assert "turn.claimed" not in text


async def test_turns_beside_one_another_do_not_disturb_their_times() -> None:
    clock, metrics = ManualClock(), Metrics()
    points = TimedPoints(lambda _: None, clock, metrics)
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def long() -> None:
        points("turn.claimed")
        begun.set()
        await may_end.wait()
        points("turn.finished")

    async def short() -> None:
        points("accept.before")
        points("accept.after")

    async with asyncio.TaskGroup() as group:
        group.create_task(long())
        await begun.wait()
        await clock.advance(5.0)
        await group.create_task(short())
        may_end.set()
    assert 'legato_phase_seconds_sum{point="turn.finished"} 5.0' in metrics.text()
    assert 'legato_phase_seconds_sum{point="accept.after"} 0.0' in metrics.text()


async def test_a_first_point_begins_anew() -> None:
    clock, metrics = ManualClock(), Metrics()
    points = TimedPoints(lambda _: None, clock, metrics)
    points("turn.claimed")
    await clock.advance(60.0)
    points("turn.claimed")
    points("turn.finished")
    assert 'legato_phase_seconds_sum{point="turn.finished"} 0.0' in metrics.text()
