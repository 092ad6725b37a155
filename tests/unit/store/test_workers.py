"""The workers that wait for a lane."""

from __future__ import annotations

import asyncio

from gateway.store.workers import LaneWorkers
from tests.support.fakes import ManualClock


async def test_who_waits_hears_when_it_is_worth_looking_though_whoever_asked_is_gone() -> None:
    clock = ManualClock()
    workers = LaneWorkers(clock)
    workers.looks()
    waiting = asyncio.create_task(workers.wait())
    await clock.advance(4.0)  # the store is slow to answer
    workers.found_none(5.0, asked_at=0.0)
    assert await waiting is None
    assert not workers.may_claim
    waiting = asyncio.create_task(workers.wait())
    await clock.advance(1.0)
    assert await waiting is None
    assert workers.may_claim


async def test_nobody_is_woken_where_nothing_is_to_be_expected() -> None:
    clock = ManualClock()
    workers = LaneWorkers(clock)
    workers.looks()
    waiting = asyncio.create_task(workers.wait())
    await clock.advance(4.0)
    workers.found_none(None, asked_at=0.0)
    await clock.advance(60.0)
    assert not waiting.done()
    workers.look()
    assert await waiting is None
