"""Receiving and lanes: each event once, each lane in order, one claim at a time, across restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from gateway.domain.chat import Attachment, Inbound, Said, Source
from gateway.domain.message import user
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import ATTEMPT_PAUSES, Arrival, InboxItem, Opening
from tests.support.remains import remains
from tests.support.store_kit import (
    START,
    Bench,
    arrival,
    claimed,
    finish,
    in_session,
    key,
    new_session,
    nothing_ready,
    outbound,
    put,
    step,
)

pytest_plugins = ["tests.support.stores"]


async def test_an_event_is_accepted_once(store: Store) -> None:
    first, again = await put(store, "e1", "e1")
    assert (first.status, again.status) == ("new", "duplicate")
    same_batch = await store.accept([arrival("e2"), arrival("e2"), arrival("e3")], cap=100)
    assert [receipt.status for receipt in same_batch] == ["new", "duplicate", "new"]
    assert [receipt.event_id for receipt in same_batch] == ["e2", "e2", "e3"]
    assert (await store.status()).waiting == 3


async def test_an_event_stays_known_after_its_end_and_a_restart(bench: Bench) -> None:
    store = await bench.open()
    await finish(store, await claimed(store, "e1"))
    await store.aclose()
    store = await bench.open()
    assert (await put(store, "e1"))[0].status == "duplicate"
    assert await nothing_ready(store)


async def test_two_tasks_with_the_same_event_make_one_item(store: Store) -> None:
    receipts = await asyncio.gather(*(store.accept([arrival("e1")], cap=100) for _ in range(10)))
    assert sorted(batch[0].status for batch in receipts) == ["duplicate"] * 9 + ["new"]
    claim = await store.claim_next("w")
    assert (await finish(store, claim)).next is None
    assert await nothing_ready(store)


async def test_a_full_lane_refuses_and_stores_nothing(store: Store) -> None:
    receipts = await store.accept([arrival(f"e{n}") for n in range(5)], cap=3)
    assert [receipt.status for receipt in receipts] == ["new"] * 3 + ["full"] * 2
    assert [receipt.waiting for receipt in receipts] == [0, 1, 2, 3, 3]
    assert (await store.accept([arrival("e1")], cap=3))[0].status == "duplicate"
    assert (await store.accept([arrival("x", "2")], cap=3))[0].status == "new"
    await finish(store, await store.claim_next("w"))
    assert (await store.accept([arrival("e4")], cap=3))[0].status == "new"


async def test_a_lane_runs_in_order_and_one_at_a_time(store: Store) -> None:
    await put(store, "e1", "e2", "e3")
    claim = await store.claim_next("w")
    assert claim.item.inbound.event_id == "e1"
    assert claim.item.attempts == 1
    assert await nothing_ready(store)
    assert [item.inbound.event_id for item in await store.waiting(key(), 10)] == ["e2", "e3"]
    assert [item.inbound.event_id for item in await store.waiting(key(), 1)] == ["e2"]
    assert [item.inbound.event_id for item in await store.waiting(key(), 1, behind=claim.item)] == ["e2"]
    end = await finish(store, claim)
    assert end.next is not None
    assert (end.next.inbound.event_id, end.next.attempts) == ("e2", 1)
    assert await nothing_ready(store)
    end = await store.finish_turn(claim.lease, None, end.next, None, "answered", ())
    assert end.next is not None
    assert end.next.inbound.event_id == "e3"
    assert (await store.finish_turn(claim.lease, None, end.next, None, "answered", ())).next is None
    assert (await store.status()).waiting == 0


def told(items: Sequence[InboxItem]) -> list[str]:
    return [item.inbound.text for item in items]


async def test_what_waits_can_be_amended_until_it_is_begun(bench: Bench) -> None:
    store = await bench.open()
    await put(store, "e1", "e2", "e3")
    claim = await store.claim_next("w")
    assert await store.amend(arrival("e3", text="changed"))
    assert not await store.amend(arrival("e1", text="too late"))
    assert not await store.amend(arrival("e4", text="never came"))
    assert not await store.amend(arrival("e3", chat="2", text="another's"))
    assert told(await store.waiting(key(), 9)) == ["hello", "changed"]
    end = await finish(store, claim)
    assert end.next is not None
    assert not await store.amend(arrival("e2", text="too late"))
    end = await store.finish_turn(claim.lease, None, end.next, None, "answered", ())
    assert end.next is not None
    assert (end.next.inbound.text, end.next.accepted_at) == ("changed", START)
    await store.finish_turn(claim.lease, None, end.next, None, "withdrawn", ())
    assert not await store.amend(arrival("e3", text="ended"))
    assert (await put(store, "e3"))[0].status == "duplicate"


async def test_what_an_earlier_process_left_can_be_amended_unless_it_was_begun(bench: Bench) -> None:
    store = await bench.open()
    first = await claimed(store, "e1")
    opening = Opening(session=new_session("s1"), transcript=())
    session = await store.open_session(first.lease, opening)
    await store.record_step(first.lease, session.ref, first.item, step(user("hello")))
    await put(store, "e2", chat="2")
    await put(store, "e3")
    await store.release(first.lease)
    await store.aclose()
    store = await bench.open()
    assert not await store.amend(arrival("e1", text="begun"))
    assert await store.amend(arrival("e2", chat="2", text="changed"))
    assert await store.amend(arrival("e3", text="changed"))
    claims = {claim.lease.key.chat: claim for claim in [await store.claim_next("w") for _ in "12"]}
    assert {chat: claim.item.inbound.text for chat, claim in claims.items()} == {"1": "hello", "2": "changed"}
    assert told(await store.waiting(key(), 9)) == ["changed"]


@pytest.mark.parametrize("steps", range(4))
async def test_an_amendment_beside_a_claim_is_kept_or_refused(bench: Bench, steps: int) -> None:
    store = await bench.open(concurrency=1)
    await put(store, "a", chat="1")
    await store.claim_next("w")
    await put(store, "b", chat="2")  # over the concurrency: its claim needs a write
    claiming = asyncio.create_task(store.claim_next("w"))
    for _ in range(steps):
        await asyncio.sleep(0)
    amended = await store.amend(arrival("b", chat="2", text="changed"))
    assert (await claiming).item.inbound.text == ("changed" if amended else "hello")


async def test_lanes_run_beside_each_other(store: Store) -> None:
    for chat in "123":
        await put(store, f"e{chat}", chat=chat)
    claims = [await store.claim_next("w") for _ in range(3)]
    assert [claim.lease.key.chat for claim in claims] == ["1", "2", "3"]


async def test_beyond_the_concurrency_lanes_wait_unclaimed_but_are_claimed_when_asked(bench: Bench) -> None:
    store = await bench.open(concurrency=1)
    for chat in "123":
        await put(store, f"e{chat}", chat=chat)
    claims = [await store.claim_next("w") for _ in range(3)]
    assert [(claim.lease.key.chat, claim.item.attempts) for claim in claims] == [("1", 1), ("2", 1), ("3", 1)]


async def test_a_turn_is_told_what_came_behind_it_since_it_was_claimed(store: Store) -> None:
    claim = await claimed(store)
    assert await store.waiting(key(), 9, behind=claim.item) == []
    await put(store, "e2")
    assert [item.inbound.event_id for item in await store.waiting(key(), 9, behind=claim.item)] == ["e2"]


async def test_a_waiting_worker_gets_what_arrives(bench: Bench) -> None:
    store = await bench.open()
    waiter = asyncio.create_task(store.claim_next("w"))
    await asyncio.sleep(0)
    await put(store, "e1", "e2")
    claim = await waiter
    assert (claim.item.inbound.event_id, claim.item.attempts, claim.lease.worker) == ("e1", 1, "w")
    assert await store.running(key()) == claim.item
    assert await store.signals(claim.item) == ()
    store = await bench.crash(store)
    again = await store.claim_next("w")
    assert again.item == replace(claim.item, attempts=2)
    assert again.begins in (None, claim.begins)
    assert (await finish(store, again)).next == (await store.running(key()))


async def test_workers_who_wait_share_what_arrives_at_once(store: Store) -> None:
    waiters = [asyncio.create_task(store.claim_next(worker)) for worker in ("w1", "w2")]
    await asyncio.sleep(0)
    await store.accept([arrival("a", "1"), arrival("b", "2"), arrival("c", "3")], cap=9)
    claims = [await asyncio.wait_for(waiter, 5) for waiter in waiters]
    claims.append(await store.claim_next("w3"))
    assert sorted(claim.lease.key.chat for claim in claims) == ["1", "2", "3"]
    assert [claim.lease.worker for claim in claims] == ["w1", "w2", "w3"]


@pytest.mark.parametrize("steps", range(14))
async def test_a_wait_that_is_cancelled_beside_an_acceptance_claims_nothing(store: Store, steps: int) -> None:
    waiter = asyncio.create_task(store.claim_next("gone"))
    await asyncio.sleep(0)
    accepting = asyncio.create_task(put(store, "e1"))
    for _ in range(steps):
        await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.gather(waiter, return_exceptions=True)
    await accepting
    if not waiter.cancelled():  # it had its claim by then
        await store.release(waiter.result().lease)
    claim = await store.claim_next("w")
    assert (claim.item.inbound.event_id, claim.item.attempts, claim.lease.worker) == ("e1", 1, "w")


@pytest.mark.parametrize("steps", range(6))
async def test_a_cancelled_wait_claims_nothing(bench: Bench, steps: int) -> None:
    store = await bench.open(concurrency=1)
    await put(store, "a", chat="1")
    await store.claim_next("w")
    await put(store, "b", chat="2")  # over the concurrency: its claim needs a write
    waiter = asyncio.create_task(store.claim_next("gone"))
    for _ in range(steps):
        await asyncio.sleep(0)
    if waiter.cancel():
        await asyncio.gather(waiter, return_exceptions=True)
    else:  # it had its claim by then
        await store.release((await waiter).lease)
    claim = await store.claim_next("w")
    assert (claim.item.inbound.event_id, claim.item.attempts, claim.lease.worker) == ("b", 1, "w")


async def test_a_fence_rises_and_a_stale_one_writes_nothing(store: Store) -> None:
    claim = await claimed(store)
    await store.release(claim.lease)
    again = await store.claim_next("other")
    assert again.lease.fence > claim.lease.fence
    assert again.item.id == claim.item.id
    opening = Opening(session=new_session("s1"))
    with pytest.raises(SessionConflict):
        await store.open_session(claim.lease, opening)
    with pytest.raises(SessionConflict):
        await finish(store, claim, outbound("o1"))
    with pytest.raises(SessionConflict):
        await store.open_reply(claim.lease, claim.item, outbound("o1"))
    with pytest.raises(SessionConflict):
        await store.release(claim.lease)
    assert await store.tip(key()) is None
    assert await store.outbox(None, 10) == []
    session = await store.open_session(again.lease, opening)
    with pytest.raises(SessionConflict):
        await store.record_step(claim.lease, session.ref, claim.item, step(user("late")))
    assert (await store.session("s1")).message_count == 0


async def test_a_lease_ends_with_its_last_item_and_with_its_process(bench: Bench) -> None:
    store = await bench.open()
    first = await claimed(store, "e1")
    await finish(store, first)
    with pytest.raises(SessionConflict):
        await store.open_session(first.lease, Opening(session=new_session("s1")))
    second = await claimed(store, "e2")
    store = await bench.crash(store)
    third = await store.claim_next("w")
    assert third.lease.fence > second.lease.fence > first.lease.fence
    with pytest.raises(SessionConflict):
        await store.open_session(second.lease, Opening(session=new_session("s1")))


async def test_an_item_ends_once(store: Store) -> None:
    claim = await claimed(store)
    await put(store, "e2")
    await finish(store, claim)
    with pytest.raises(SessionConflict):
        await finish(store, claim, outbound("o1"))
    assert await store.outbox(None, 10) == []


async def test_a_released_item_comes_back_first_and_uncounted(store: Store) -> None:
    claim = await claimed(store)
    await put(store, "e2")
    await store.release(claim.lease)
    again = await store.claim_next("w")
    assert (again.item.inbound.event_id, again.item.attempts) == ("e1", 1)
    assert [item.inbound.event_id for item in await store.waiting(key(), 9)] == ["e2"]


async def test_an_attempt_that_failed_counts_when_its_lane_is_given_back(store: Store) -> None:
    claim = await claimed(store)
    await store.release(claim.lease, counted=True)
    again = await store.claim_next("w")
    assert (again.item.inbound.event_id, again.item.attempts) == ("e1", 2)


async def test_after_a_crash_lanes_go_on_in_order_and_attempts_count(bench: Bench) -> None:
    store = await bench.open()
    await put(store, "a1", "a2", chat="1")
    await put(store, "b1", chat="2")
    claim = await store.claim_next("w")
    end = await finish(store, claim)
    assert end.next is not None
    store = await bench.crash(store)
    await put(store, "a3", chat="1")
    claims = [await store.claim_next("w"), await store.claim_next("w")]
    attempts = {each.item.inbound.event_id: each.item.attempts for each in claims}
    assert attempts["a2"] == 2
    assert attempts["b1"] in (1, 2)  # 2: a store may claim a lane before a worker asks for it
    assert [item.inbound.event_id for item in await store.waiting(key("1"), 9)] == ["a3"]
    assert await nothing_ready(store)


async def test_a_quiet_end_does_not_count_what_no_worker_began(bench: Bench) -> None:
    store = await bench.open()
    for _ in range(3):
        await put(store, "e1")
        await store.aclose()
        store = await bench.open()
    assert (await store.claim_next("w")).item.attempts == 1


async def test_attempts_rise_with_every_crash(bench: Bench) -> None:
    store = await bench.open()
    await put(store, "e1")
    for attempt in range(1, 5):
        await bench.clock.advance(ATTEMPT_PAUSES[attempt - 1] + 1.0)
        assert (await store.claim_next("w")).item.attempts == attempt
        store = await bench.crash(store)


async def test_an_inbound_comes_back_whole(bench: Bench) -> None:
    store = await bench.open()
    source = Source(platform="test", chat="-1/2", chat_type="thread", user="u", thread="7", user_name="Ü 名")
    inbound = Inbound(
        event_id="e/1",
        source=source,
        text="line\nsecond \x00 \ud83d half 😀",
        attachments=(Attachment(kind="image", ref="f1", name="a.png", mime="image/png", size=3),),
        reply_to="m9",
        sent_at=1.5,
        own="line",
    )
    await store.accept([Arrival(inbound=inbound, key=key("-1/2"), at=START)], cap=9)
    assert (await store.claim_next("w")).item.inbound == inbound
    store = await bench.crash(store)
    item = (await store.claim_next("w")).item
    assert (item.inbound, item.key, item.accepted_at) == (inbound, key("-1/2"), START)


async def test_bypass_items_do_not_wait_and_are_not_claimed_by_workers(store: Store) -> None:
    claim = await claimed(store, "e1")
    (receipt,) = await store.accept([arrival("stop", bypass=True)], cap=1)
    assert receipt.status == "new"
    assert receipt.item is not None
    assert (receipt.item.inbound.event_id, receipt.item.attempts) == ("stop", 1)
    assert await store.waiting(key(), 9) == []
    assert await nothing_ready(store)
    rows = await store.finish_bypassed(receipt.item, [outbound("o1")])
    assert [row.id for row in rows] == ["o1"]
    assert (await finish(store, claim)).next is None


async def test_bypass_items_of_a_dead_process_come_back_once(bench: Bench) -> None:
    store = await bench.open()
    await store.accept([arrival("stop", bypass=True)], cap=9)
    assert await store.claim_bypassed("w") == []
    store = await bench.crash(store)
    assert await nothing_ready(store)
    (item,) = await store.claim_bypassed("w")
    assert (item.inbound.event_id, item.attempts) == ("stop", 2)
    assert await store.claim_bypassed("w") == []
    await store.finish_bypassed(item, ())
    store = await bench.crash(store)
    assert await store.claim_bypassed("w") == []


async def test_of_a_batch_with_too_many_the_known_are_duplicates(store: Store) -> None:
    await put(store, "e1", "e2")
    known, new, again, late, first, other = await store.accept(
        [*(arrival(event) for event in ("e1", "e3", "e3", "e4", "e2")), arrival("x", "2")], cap=3
    )
    assert [each.status for each in (known, new, again)] == ["duplicate", "new", "duplicate"]
    assert [each.status for each in (late, first, other)] == ["full", "duplicate", "new"]


async def test_refuse_records_the_event_and_its_notice_once(store: Store) -> None:
    rows = await store.refuse(arrival("e1"), outbound("o1", text="full"))
    assert [(row.id, row.state) for row in rows] == [("o1", "sending")]
    assert await store.refuse(arrival("e1"), outbound("o2")) == ()
    assert (await put(store, "e1"))[0].status == "duplicate"
    assert (await store.status()).waiting == 0


async def test_signals_reach_the_running_item_and_end_with_it(store: Store) -> None:
    heard: list[tuple[str, str]] = []
    store.on_signal(lambda where, kind: heard.append((where.chat, kind)))
    assert not await store.signal(key(), "stop", START)
    claim = await claimed(store)
    await put(store, "e2")
    assert await store.signal(key(), "stop", START)
    assert await store.signal(key(), "stop", START)
    assert await store.signal(key(), "interrupt", START + 1)
    assert await store.signals(claim.item) == ("stop", "interrupt")
    assert heard == [("1", "stop"), ("1", "stop"), ("1", "interrupt")]
    assert not await store.signal(key("2"), "stop", START)
    end = await finish(store, claim)
    assert await store.signals(claim.item) == ()
    assert end.next is not None
    assert await store.signals(end.next) == ()


async def test_a_signal_outlives_its_process_and_reaches_a_resumed_item(bench: Bench) -> None:
    store = await bench.open()
    await claimed(store)
    await store.signal(key(), "stop", START)
    store = await bench.crash(store)
    assert await store.signal(key(), "interrupt", START + 1)
    claim = await store.claim_next("w")
    assert await store.signals(claim.item) == ("stop", "interrupt")


async def test_absorbed_items_leave_the_lane_and_end_with_the_turn(bench: Bench) -> None:
    store = await bench.open()
    claim = await claimed(store, "e1")
    await put(store, "e2", "e3", "e4")
    session = await store.open_session(claim.lease, Opening(session=new_session("s1")))
    second, third, fourth = await store.waiting(key(), 9)
    await store.record_step(claim.lease, session.ref, claim.item, step(user("e2"), absorbed=[second.id]))
    assert await store.waiting(key(), 9) == [third, fourth]
    with pytest.raises(SessionConflict):
        await store.record_step(claim.lease, session.ref, claim.item, step(user("e9"), absorbed=["999"]))
    store = await bench.crash(store)
    claim = await store.claim_next("w")
    assert claim.item.inbound.event_id == "e1"
    assert [item.id for item in await store.waiting(key(), 9)] == [third.id, fourth.id]
    last = step(user("e3"), absorbed=[third.id])
    end = await store.finish_turn(claim.lease, session.ref, claim.item, last, "answered", ())
    assert end.next is not None
    assert end.next.inbound.event_id == "e4"
    assert (await store.status()).waiting == 1


async def test_what_its_writer_took_back_meanwhile_is_forgotten_behind_the_turn(store: Store) -> None:
    claim = await claimed(store, "e1")
    await put(store, "e2")
    session = await store.open_session(claim.lease, Opening(session=new_session("s1")))
    (second,) = await store.waiting(key(), 9)  # its words are in the turn now
    gone = arrival("e2", text="")
    assert await store.amend(replace(gone, inbound=replace(gone.inbound, kind="withdrawn")))
    end = await store.finish_turn(
        claim.lease, session.ref, claim.item, step(user("e2"), absorbed=[second.id]), "answered", ()
    )
    assert end.next is not None
    assert (end.next.inbound.kind, end.next.inbound.text) == ("withdrawn", "e2")


async def test_a_lease_has_one_holder_until_it_lets_go(store: Store) -> None:
    assert await store.hold("bot:1", "a", 60)
    assert await store.hold("bot:1", "a", 60)
    assert not await store.hold("bot:1", "b", 60)
    assert await store.hold("bot:2", "b", 60)
    await store.let_go("bot:1", "b")
    assert not await store.hold("bot:1", "b", 60)
    await store.let_go("bot:1", "a")
    assert await store.hold("bot:1", "b", 60)


async def test_many_lanes_at_once_keep_their_order(store: Store) -> None:
    chats, each = 12, 6
    order: dict[str, list[str]] = {}

    async def feed(chat: str) -> None:
        for number in range(each):
            await store.accept([arrival(f"{chat}-{number}", chat)], cap=100)

    async def work() -> None:
        while sum(map(len, order.values())) < chats * each:
            claim = await store.claim_next("w")
            item = claim.item
            while True:
                order.setdefault(claim.lease.key.chat, []).append(item.inbound.event_id)
                following = (await store.finish_turn(claim.lease, None, item, None, "answered", ())).next
                if following is None:
                    break
                item = following

    workers = [asyncio.create_task(work()) for _ in range(5)]
    await asyncio.gather(*(feed(f"c{number}") for number in range(chats)))
    async with asyncio.timeout(60):
        await asyncio.wait(workers, return_when=asyncio.FIRST_COMPLETED)
    for worker in workers:
        worker.cancel()
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert all(result is None or isinstance(result, asyncio.CancelledError) for result in results)
    assert order == {f"c{n}": [f"c{n}-{i}" for i in range(each)] for n in range(chats)}


async def test_what_runs_is_known_to_who_asks(bench: Bench) -> None:
    store = await bench.open()
    assert await store.running(key()) is None
    await put(store, "e1", "e2")
    claim = await store.claim_next("w")
    running = await store.running(key())
    assert running is not None
    assert (running.inbound.event_id, running.attempts) == ("e1", 1)
    store = await bench.crash(store)
    running = await store.running(key())  # begun, and about to be resumed
    assert running is not None
    assert running.id == claim.item.id
    again = await store.claim_next("w")
    end = await finish(store, again)
    assert end.next is not None
    running = await store.running(key())
    assert running is not None
    assert running.id == end.next.id
    await finish(store, replace(again, item=end.next))
    assert await store.running(key()) is None


async def test_what_came_under_a_key_is_listed_whatever_became_of_it(bench: Bench) -> None:
    store = await bench.open()
    await finish(store, await claimed(store, "e1"))
    await store.accept([arrival("aside", bypass=True), arrival("e2"), arrival("other", chat="2")], cap=100)
    await store.refuse(arrival("e3"), outbound("o1"))
    assert [item.inbound.event_id for item in await store.heard(key(), 10)] == ["e3", "e2", "aside", "e1"]
    assert [item.inbound.event_id for item in await store.heard(key(), 2)] == ["e3", "e2"]
    await store.aclose()
    store = await bench.open()
    assert [item.inbound.event_id for item in await store.heard(key(), 10)] == ["e3", "e2", "aside", "e1"]
    assert await store.heard(key("3"), 10) == []


async def test_attempts_that_fail_after_a_stored_step_never_add_up(store: Store) -> None:
    claim, session = await in_session(store)
    counted = [claim.item.attempts]
    for _ in range(5):
        await store.record_step(claim.lease, session.ref, claim.item, step(user("more")))
        await store.release(claim.lease, counted=True)
        claim = await store.claim_next("w")
        counted.append(claim.item.attempts)
    assert counted == [1, 2, 2, 2, 2, 2]


async def test_what_others_said_in_the_group_before_it_is_not_stored(bench: Bench) -> None:
    store = await bench.open()
    came = arrival("e1")
    said = Said(source=came.inbound.source, text="quizzaciously", at=START)
    await store.accept([replace(came, inbound=replace(came.inbound, before=(said,)))], cap=100)
    assert (await store.claim_next("w")).item.inbound == came.inbound
    assert await remains(bench, "quizzaciously") == []
