"""A process does the work of the platforms it serves; what belongs to others waits for them."""

from __future__ import annotations

import asyncio

import pytest

from gateway.domain.chat import ChatAddress, Outbound
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Arrival
from tests.support.store_kit import Bench, arrival, claimed, finish, key, outbound, put
from tests.support.waiting import eventually

pytest_plugins = ["tests.support.stores"]

# Names that look like a part of each other, and one that a key writes in another way.
PLATFORMS = ("oth", "other", "o/th er")


def arrival_on(platform: str, event_id: str, *, bypass: bool = False) -> Arrival:
    """A direct message on some platform."""
    plain = arrival(event_id, bypass=bypass)
    source = replace(plain.inbound.source, platform=platform)
    return replace(plain, inbound=replace(plain.inbound, source=source), key=key(platform=platform))


def outbound_on(platform: str, number: str) -> Outbound:
    """A reply on some platform."""
    return replace(outbound(number), key=key(platform=platform), to=ChatAddress(platform=platform, chat="1"))


@pytest.mark.parametrize("platform", PLATFORMS)
async def test_a_lane_waits_for_a_process_that_runs_its_platform(store: Store, platform: str) -> None:
    others = [each for each in PLATFORMS if each != platform]
    store.serve(runs=["test", *others], sends=["test"])
    await store.accept([arrival_on(platform, "e1")], cap=9)
    await put(store, "e2")
    assert (await store.claim_next("w")).item.inbound.event_id == "e2"
    store.serve(runs=[platform], sends=[])
    assert (await store.claim_next("w")).item.inbound.event_id == "e1"


async def test_a_lane_left_by_a_crash_waits_for_its_platform_too(bench: Bench) -> None:
    store = await bench.open()
    for event_id in ("e1", "e2"):
        await store.accept([arrival_on("other", event_id)], cap=9)
    assert (await store.claim_next("w")).item.inbound.event_id == "e1"
    store = await bench.crash(store)
    store.serve(runs=["test"], sends=[])
    await claimed(store, "e3")
    store.serve(runs=["test", "other"], sends=[])
    again = await store.claim_next("w")
    assert (again.item.inbound.event_id, again.item.attempts) == ("e1", 2)
    following = (await finish(store, again)).next
    assert following is not None
    assert following.inbound.event_id == "e2"


async def test_a_command_beside_the_lane_waits_for_its_platform(bench: Bench) -> None:
    store = await bench.open()
    await store.accept([arrival_on("other", "e1", bypass=True), arrival("e2", bypass=True)], cap=9)
    store = await bench.crash(store)
    store.serve(runs=["test"], sends=[])
    assert [item.inbound.event_id for item in await store.claim_bypassed("w")] == ["e2"]
    store.serve(runs=["other"], sends=[])
    assert [item.inbound.event_id for item in await store.claim_bypassed("w")] == ["e1"]


@pytest.mark.parametrize("platform", PLATFORMS)
async def test_rows_wait_for_a_process_that_sends_to_their_platform(store: Store, platform: str) -> None:
    told: list[None] = []
    store.on_rows(lambda: told.append(None))
    store.serve(runs=[], sends=["test", *(each for each in PLATFORMS if each != platform)])
    rows = [outbound_on(platform, "o1"), outbound("o2"), outbound_on(platform, "o3")]
    assert [row.id for row in await store.emit(rows)] == ["o2"]
    assert await store.claim_outbound(9) == []
    before = len(told)
    store.serve(runs=[], sends=[platform])
    await eventually(lambda: len(told) > before)
    (row,) = await store.claim_outbound(9)
    assert (row.id, row.attempts, row.ambiguous) == ("o1", 1, 0)
    following = await store.mark_sent("o1", "m1")
    assert following is not None
    assert following.id == "o3"


async def test_rows_that_were_on_their_way_when_their_platform_came_are_not_forgotten(store: Store) -> None:
    store.serve(runs=[], sends=[])
    emitting = asyncio.create_task(store.emit([outbound("o1")]))
    await asyncio.sleep(0)  # the step has begun, for a process that sends nothing
    told: list[None] = []
    store.serve(runs=[], sends=["test"])
    store.on_rows(lambda: told.append(None))
    rows = list(await emitting)
    if not rows:
        await eventually(lambda: told)
        rows = await store.claim_outbound(9)
    assert [row.id for row in rows] == ["o1"]


async def test_a_retry_is_left_to_who_sends_when_it_is_due(bench: Bench) -> None:
    store = await bench.open()
    store.serve(runs=[], sends=["test"])
    await store.emit([outbound("o1")])
    await store.mark_retry("o1", 10, ambiguous=True)
    store.serve(runs=[], sends=[])
    await bench.clock.advance(20)
    assert await store.claim_outbound(9) == []
    told: list[None] = []
    store.on_rows(lambda: told.append(None))
    store.serve(runs=[], sends=["test"])
    await eventually(lambda: told)
    (row,) = await store.claim_outbound(9)
    assert (row.id, row.attempts, row.ambiguous) == ("o1", 2, 1)


async def test_a_row_left_by_a_crash_is_ambiguous_whenever_its_platform_is_served(bench: Bench) -> None:
    store = await bench.open()
    await store.emit([outbound_on("other", "o1")])
    store = await bench.crash(store)
    store.serve(runs=[], sends=["test"])
    assert await store.claim_outbound(9) == []
    told: list[None] = []
    store.on_rows(lambda: told.append(None))
    store.serve(runs=[], sends=["other"])
    await eventually(lambda: told)
    (row,) = await store.claim_outbound(9)
    assert (row.id, row.attempts, row.ambiguous) == ("o1", 2, 1)


async def test_what_waits_is_counted_by_platform(store: Store) -> None:
    await put(store, "e1", "e2")
    await store.accept([arrival_on("other", "e3")], cap=9)
    await store.emit([outbound("o1"), outbound_on("o/th er", "o2"), outbound_on("other", "o3")])
    everything, some, none = [await store.status(each) for each in (None, ["other", "o/th er"], [])]
    assert (everything.waiting, everything.unsent) == (3, 3)
    assert (some.waiting, some.unsent) == (1, 2)
    assert (none.waiting, none.unsent) == (0, 0)
