"""Lanes under wrong order, a stop at the wrong moment, and a store that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

from gateway.domain.chat import Inbound, SessionKey, Source
from gateway.runtime.clock import Clock, SystemClock
from gateway.runtime.errors import StoreError, StoreUnavailable
from gateway.runtime.tasks import Background
from gateway.store.port import Store
from gateway.store.records import Claim, InboxItem, Lease
from gateway.turns.lanes import Lanes
from tests.support.fakes import ManualClock


class FewClaims:
    """The part of a store that lanes use: claims come from a queue, what is released goes back to it."""

    def __init__(self) -> None:
        self.claims: asyncio.Queue[Claim] = asyncio.Queue()
        self.claimed = 0
        self.released: list[Lease] = []
        self.full = False
        self.failures: list[StoreError] = []  # raised by the next claims, one each

    def offer(self, chat: str) -> Claim:
        key = SessionKey(platform="p", chat=chat)
        source = Source(platform="p", chat=chat, chat_type="direct", user="u")
        inbound = Inbound(event_id=chat, source=source, text="hello")
        fence = self.claimed + self.claims.qsize() + 1
        claim = Claim(
            lease=Lease(key=key, worker="w", fence=fence),
            item=InboxItem(id=str(fence), key=key, inbound=inbound, accepted_at=0.0, attempts=1),
        )
        self.claims.put_nowait(claim)
        return claim

    async def claim_next(self, worker: str) -> Claim:
        if self.failures:
            raise self.failures.pop()
        claim = await self.claims.get()
        self.claimed += 1
        return claim

    async def release(self, lease: Lease, *, counted: bool = False) -> None:
        await asyncio.sleep(0)
        if self.full:
            raise StoreUnavailable("the disk is full")
        self.released.append(lease)
        self.offer(lease.key.chat)


def lanes_over(
    store: FewClaims,
    run: Callable[[Lease, InboxItem], Awaitable[InboxItem | None]],
    background: Background,
    *,
    concurrent: int = 2,
    clock: Clock | None = None,
    rest: Callable[[SessionKey], float] = lambda _: 0.0,
) -> Lanes:
    return Lanes(
        store=cast(Store, store),
        run=run,
        worker="w",
        concurrent=concurrent,
        background=background,
        clock=clock or SystemClock(),
        rest=rest,
    )


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_lane_that_is_claimed_again_before_its_worker_has_left_costs_no_slot() -> None:
    """The store frees a lane when its end is durable, some steps before the worker hears of it."""
    store, background = FewClaims(), Background()
    leave: dict[str, asyncio.Event] = {}

    async def run(lease: Lease, item: InboxItem) -> InboxItem | None:
        leave[item.id] = asyncio.Event()
        await leave[item.id].wait()
        return None

    lanes = lanes_over(store, run, background)
    background.start(lanes.serve(), name="lanes")
    for _ in range(3):
        one, other = store.offer("c"), store.offer("c")
        await settled()
        leave[one.item.id].set()
        await settled()
        assert lanes.active == 1, "the later worker of the lane still runs"
        leave[other.item.id].set()
        await settled()
        assert lanes.active == 0
    await background.aclose()


async def test_a_claim_that_fails_in_an_unknown_way_is_tried_again() -> None:
    store, background, clock = FewClaims(), Background(), ManualClock()
    ran: list[str] = []

    async def run(lease: Lease, item: InboxItem) -> InboxItem | None:
        ran.append(item.id)
        return None

    lanes = lanes_over(store, run, background, clock=clock)
    store.failures = [StoreError("never heard of it") for _ in range(20)]
    background.start(lanes.serve(), name="lanes")
    store.offer("c")
    for _ in range(20):
        await settled()
        await clock.advance(1.0)
    await settled()
    assert ran == ["1"]
    await background.aclose()


async def test_a_lane_that_its_writers_keep_full_rests_and_no_other_waits_for_it() -> None:
    store, background, clock = FewClaims(), Background(), ManualClock()
    ran: list[str] = []

    async def run(lease: Lease, item: InboxItem) -> InboxItem | None:
        ran.append(lease.key.chat)
        return None

    def rest(key: SessionKey) -> float:
        return 1.0 if key.chat == "flooded" else 0.0

    lanes = lanes_over(store, run, background, clock=clock, rest=rest)
    background.start(lanes.serve(), name="lanes")
    for chat in ("flooded", "calm", "calm too"):
        store.offer(chat)
    await settled()
    assert ran == ["calm", "calm too"]
    await clock.advance(1.0)
    await settled()
    assert ran == ["calm", "calm too", "flooded"]
    await background.aclose()


async def test_a_stop_does_not_wait_for_a_lane_that_rests() -> None:
    store, background = FewClaims(), Background()

    async def run(lease: Lease, item: InboxItem) -> InboxItem | None:
        raise AssertionError("it rests")

    lanes = lanes_over(store, run, background, clock=ManualClock(), rest=lambda _: 1.0)
    background.start(lanes.serve(), name="lanes")
    store.offer("flooded")
    await settled()
    await lanes.stop(0.0)
    assert [lease.key.chat for lease in store.released] == ["flooded"]
    await background.aclose()


async def test_a_stop_gives_each_waiting_lane_back_once_and_claims_no_more() -> None:
    store, background, clock = FewClaims(), Background(), ManualClock()
    never = asyncio.Event()

    async def run(lease: Lease, item: InboxItem) -> InboxItem | None:
        await never.wait()
        return None

    lanes = lanes_over(store, run, background, concurrent=4, clock=clock)
    background.start(lanes.serve(), name="lanes")
    store.offer("slow")
    await settled()
    stopping = asyncio.create_task(lanes.stop(30.0))
    await settled()
    store.offer("late")
    await settled()
    assert len(store.released) <= 1, "lanes spin while they stop"
    await clock.advance(30.0)
    await stopping
    assert {lease.key.chat for lease in store.released} >= {"slow"}
    await background.aclose()


async def test_a_full_disk_does_not_keep_the_lanes_from_stopping() -> None:
    store, background, clock = FewClaims(), Background(), ManualClock()
    never = asyncio.Event()

    async def run(lease: Lease, item: InboxItem) -> InboxItem | None:
        await never.wait()
        return None

    lanes = lanes_over(store, run, background, clock=clock)
    background.start(lanes.serve(), name="lanes")
    store.offer("slow")
    await settled()
    store.full = True
    stopping: asyncio.Task[Any] = asyncio.create_task(lanes.stop(30.0))
    await clock.advance(31.0)
    await settled()
    try:
        assert stopping.done()
    finally:
        store.full = False
        await clock.advance(60.0)
        await stopping
        await background.aclose()
