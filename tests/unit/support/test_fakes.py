"""The fakes keep their promises, or every test that trusts them means nothing."""

import asyncio

import pytest

from gateway.runtime.clock import Clock, Ids
from tests.support.fakes import ManualClock, SequentialIds


def test_they_are_what_the_ports_ask_for():
    clock: Clock = ManualClock(now=100.0)
    ids: Ids = SequentialIds()
    assert (clock.now(), clock.monotonic()) == (100.0, 0.0)
    assert [ids.new("s"), ids.new("o")] == ["s_000001", "o_000002"]


async def test_sleepers_wake_in_order_and_at_their_time():
    clock = ManualClock(now=0.0)
    woken = []

    async def sleeper(seconds):
        await clock.sleep(seconds)
        woken.append((seconds, clock.now()))
        await clock.sleep(seconds)
        woken.append((seconds, clock.now()))

    async with asyncio.TaskGroup() as group:
        for seconds in (3, 1, 2):
            group.create_task(sleeper(seconds))
        await clock.advance(2.5)
        assert woken == [(1, 1), (2, 2), (1, 2)]
        await clock.advance(10)
    assert woken == [(1, 1), (2, 2), (1, 2), (3, 3), (2, 4), (3, 6)]
    assert clock.now() == 12.5
    assert clock.pending == ()


async def test_a_limit_strikes_and_can_be_extended():
    clock = ManualClock()
    outcome = []

    async def work(extend):
        try:
            async with clock.limit(10) as deadline:
                await clock.sleep(5)
                if extend:
                    deadline.extend(20)
                await clock.sleep(15)
            outcome.append("done")
        except TimeoutError:
            outcome.append(f"late at {clock.monotonic()}")

    async with asyncio.TaskGroup() as group:
        group.create_task(work(False))
        group.create_task(work(True))
        await clock.advance(100)
    assert outcome == ["late at 10.0", "done"]
    assert clock.pending == ()


async def test_a_limit_of_nothing_strikes_at_the_next_wait():
    clock = ManualClock()
    with pytest.raises(TimeoutError):
        async with clock.limit(0):
            await clock.sleep(1)


async def test_cancelling_a_sleeper_forgets_it():
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(5))
    await clock.settle()
    assert clock.pending == (5.0,)
    task.cancel()
    await clock.settle()
    assert clock.pending == ()


async def test_until_pending_waits_for_code_behind_a_thread():
    clock = ManualClock()

    async def work():
        await asyncio.to_thread(lambda: None)
        await clock.sleep(1)
        return clock.monotonic()

    task = asyncio.create_task(work())
    await clock.until_pending()
    await clock.advance(1)
    assert await task == 1.0


async def test_a_jump_of_the_wall_clock_leaves_monotonic_time_alone():
    clock = ManualClock(now=100.0)
    clock.jump(-50)
    assert (clock.now(), clock.monotonic()) == (50.0, 0.0)
