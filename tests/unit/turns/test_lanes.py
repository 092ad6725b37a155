"""Lanes under wrong order, a stop at the wrong moment, and a store that fails."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Self, cast

from gateway.domain.chat import OWN, Inbound, SessionKey, Source
from gateway.runtime.errors import StoreError, StoreUnavailable
from gateway.runtime.tasks import Background
from gateway.store.port import Store
from gateway.store.records import Beginning, Claim, InboxItem, Lease
from gateway.turns.lanes import Lanes, RunItem
from tests.support.fakes import ManualClock


class FewClaims:
    """The part of a store that lanes use: claims come from a queue, what is released goes back to it."""

    def __init__(self) -> None:
        self.claims: asyncio.Queue[Claim] = asyncio.Queue()
        self.claimed = 0
        self.released: list[Lease] = []
        self.full = False
        self.failures: list[StoreError] = []  # raised by the next claims, one each

    def offer(self, chat: str, thread: str | None = None) -> Claim:
        key = SessionKey(platform="p", chat=chat, thread=thread)
        source = Source(platform="p", chat=chat, chat_type="direct", user="u", thread=thread)
        inbound = Inbound(event_id=chat, source=source, text="hello")
        fence = self.claimed + self.claims.qsize() + 1
        claim = Claim(
            lease=Lease(key=key, worker="w", fence=fence),
            item=InboxItem(id=str(fence), key=key, inbound=inbound, accepted_at=0.0, attempts=1),
            begins=Beginning(journal=None, tip=None, reminders=False),
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
        self.offer(lease.key.chat, lease.key.thread)


class Running:
    """Lanes that serve a store, on a clock of the test's."""

    def __init__(
        self, run: RunItem, *, concurrent: int = 2, rest: Callable[[SessionKey], float] = lambda _: 0.0
    ) -> None:
        self.store, self.clock = FewClaims(), ManualClock()
        self._background = Background()
        self.lanes = Lanes(
            store=cast(Store, self.store),
            run=run,
            worker="w",
            concurrent=concurrent,
            background=self._background,
            clock=self.clock,
            rest=rest,
            crowded=self._crowded,
        )
        self.crowded: list[str | None] = []

    async def _crowded(self, item: InboxItem) -> None:
        self.crowded.append(item.key.thread)

    async def __aenter__(self) -> Self:
        self._background.start(self.lanes.serve(), name="lanes")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._background.aclose()


async def forever(lease: Lease, item: InboxItem, begins: Beginning | None) -> InboxItem | None:
    """A turn that never ends."""
    await asyncio.Event().wait()
    return None


def noting(ran: list[str]) -> RunItem:
    """Turns that end at once; their chats are noted."""

    async def run(lease: Lease, item: InboxItem, begins: Beginning | None) -> InboxItem | None:
        ran.append(lease.key.chat)
        return None

    return run


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


async def test_a_lane_that_is_claimed_again_before_its_worker_has_left_costs_no_slot() -> None:
    """The store frees a lane when its end is durable, some steps before the worker hears of it."""
    leave: dict[str, asyncio.Event] = {}

    async def run(lease: Lease, item: InboxItem, begins: Beginning | None) -> InboxItem | None:
        leave[item.id] = asyncio.Event()
        await leave[item.id].wait()
        return None

    async with Running(run) as it:
        for _ in range(3):
            one, other = it.store.offer("c"), it.store.offer("c")
            await settled()
            leave[one.item.id].set()
            await settled()
            assert it.lanes.active == 1, "the later worker of the lane still runs"
            leave[other.item.id].set()
            await settled()
            assert it.lanes.active == 0


async def test_the_chats_of_one_person_leave_places_for_others() -> None:
    leave, ran, anew = defaultdict[str, asyncio.Event](asyncio.Event), list[str](), set[str]()

    async def run(lease: Lease, item: InboxItem, begins: Beginning | None) -> InboxItem | None:
        ran.append(name := lease.key.thread or lease.key.chat)
        if begins is None:
            anew.add(name)
        await leave[name].wait()
        return None

    async with Running(run, concurrent=8) as it:
        own = [f"{OWN}{number}" for number in range(20)]
        for thread in own:
            it.store.offer("eager", thread)
        await settled()
        assert (ran, it.crowded) == (own[:2], own[2:])
        others = [f"other {number}" for number in range(7)]
        for each in others:
            it.store.offer(each)
        await settled()
        assert ran == [*own[:2], *others[:6]], "all places but the share of one person are there for others"
        leave[own[1]].set()
        await settled()
        assert set(ran[8:]) == {own[2], others[6]}
        for each in (*own, *others):
            leave[each].set()
        await settled()
        assert sorted(ran) == sorted([*own, *others])
        assert anew == {*own[2:]}, "what was known before a wait may have changed"
        assert it.lanes.active == 0
        leave.clear()
        for each in (again := [f"again {number}" for number in range(9)]):
            it.store.offer(each)
        await settled()
        assert ran[-8:] == again[:8], "as many places as before"
        assert it.lanes.is_full


async def test_a_stop_gives_back_what_waits_for_other_chats_of_its_person() -> None:
    async with Running(forever, concurrent=4) as it:
        for number in range(3):
            it.store.offer("eager", f"{OWN}{number}")
        await settled()
        stopping = asyncio.create_task(it.lanes.stop(30.0))
        await settled()
        await it.clock.advance(30.0)
        await stopping
        assert {lease.key.thread for lease in it.store.released} == {f"{OWN}{number}" for number in range(3)}


async def test_a_claim_that_fails_in_an_unknown_way_is_tried_again() -> None:
    ran: list[str] = []
    it = Running(noting(ran))
    it.store.failures = [StoreError("never heard of it") for _ in range(20)]
    async with it:
        it.store.offer("c")
        for _ in range(20):
            await settled()
            await it.clock.advance(1.0)
        await settled()
        assert ran == ["c"]


async def test_a_lane_that_its_writers_keep_full_rests_and_no_other_waits_for_it() -> None:
    ran: list[str] = []
    async with Running(noting(ran), rest=lambda key: 1.0 if key.chat == "flooded" else 0.0) as it:
        for chat in ("flooded", "calm", "calm too"):
            it.store.offer(chat)
        await settled()
        assert ran == ["calm", "calm too"]
        await it.clock.advance(1.0)
        await settled()
        assert ran == ["calm", "calm too", "flooded"]


async def test_a_stop_does_not_wait_for_a_lane_that_rests() -> None:
    ran: list[str] = []
    async with Running(noting(ran), rest=lambda _: 1.0) as it:
        it.store.offer("flooded")
        await settled()
        await it.lanes.stop(0.0)
        assert [lease.key.chat for lease in it.store.released] == ["flooded"]
        assert ran == []


async def test_a_stop_gives_each_waiting_lane_back_once_and_claims_no_more() -> None:
    async with Running(forever, concurrent=4) as it:
        it.store.offer("slow")
        await settled()
        stopping = asyncio.create_task(it.lanes.stop(30.0))
        await settled()
        it.store.offer("late")
        await settled()
        assert len(it.store.released) <= 1, "lanes spin while they stop"
        await it.clock.advance(30.0)
        await stopping
        assert {lease.key.chat for lease in it.store.released} >= {"slow"}


async def test_a_full_disk_does_not_keep_the_lanes_from_stopping() -> None:
    async with Running(forever) as it:
        it.store.offer("slow")
        await settled()
        it.store.full = True
        stopping: asyncio.Task[Any] = asyncio.create_task(it.lanes.stop(30.0))
        await it.clock.advance(31.0)
        await settled()
        try:
            assert stopping.done()
        finally:
            it.store.full = False
            await it.clock.advance(60.0)
            await stopping
