"""Several processes on one Redis database: who runs what, and what becomes of those that fall silent.

Each store stands for a process. A silent one has a clock that stands still, so that it never beats; its lease ends
when a test says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.domain.message import note_of, user
from gateway.runtime.clock import Clock, SystemClock
from gateway.runtime.errors import SessionConflict
from gateway.store.port import Store
from gateway.store.records import Forgetting, Opening, Rewriting
from gateway.store.redis import RedisStore
from gateway.store.redis.partitions import partition_of
from tests.support.fakes import ManualClock
from tests.support.model import PATIENCE
from tests.support.store_kit import (
    START,
    arrival,
    claimed,
    contents,
    exchange,
    finish,
    in_session,
    key,
    new_session,
    outbound,
    put,
    step,
    transcript,
    turns_of,
)
from tests.support.stores import let_die
from tests.support.waiting import eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]

LEASE = 600.0  # seconds: nobody is taken for dead because the machine is slow

Opener = Callable[..., Any]
Over = Callable[[Any], None]


@pytest.fixture
async def process(redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Opener]:
    """Starts processes on an empty database, and ends them."""
    monkeypatch.setattr("gateway.store.redis.backend._LONGEST_BEAT", 0.1)
    redis_server.empty()
    stores: list[Any] = []

    async def start(*, silent: bool = False, lease: float = LEASE) -> Any:
        clock: Clock = ManualClock(START) if silent else SystemClock()
        stores.append(RedisStore(redis_server.url, clock=clock, lease_seconds=lease, timeout=PATIENCE))
        await stores[-1].open()
        return stores[-1]

    yield start
    await asyncio.gather(*(store.aclose() for store in stores))


@pytest.fixture
def over(redis_server: RedisServer) -> Over:
    """Lets the lease of a process end."""
    return lambda store: let_die([redis_server], store.owner)


async def test_lanes_run_in_order_and_never_twice_at_once(process: Opener) -> None:
    stores = [await process() for _ in range(3)]
    chats, each = 20, 8
    order: dict[str, list[str]] = {}
    running: set[str] = set()
    workers_of: dict[str, set[int]] = {}

    async def feed(chat: str) -> None:
        for number in range(each):
            await stores[number % 3].accept([arrival(f"{chat}-{number}", chat)], cap=100)

    async def work(number: int, store: Store) -> None:
        while True:
            claim = await store.claim_next(f"w{number}")
            item: Any = claim.item
            while item is not None:
                chat = claim.lease.key.chat
                assert chat not in running
                running.add(chat)
                order.setdefault(chat, []).append(item.inbound.event_id)
                workers_of.setdefault(chat, set()).add(number)
                await asyncio.sleep(0)
                running.remove(chat)
                item = (await store.finish_turn(claim.lease, None, item, None, "answered", ())).next

    tasks = [asyncio.create_task(work(number, store)) for number, store in enumerate(stores * 2)]
    await asyncio.gather(*(feed(f"c{number}") for number in range(chats)))
    await eventually(lambda: sum(map(len, order.values())) == chats * each or any(task.done() for task in tasks))
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    assert order == {f"c{n}": [f"c{n}-{i}" for i in range(each)] for n in range(chats)}
    assert len(set().union(*workers_of.values())) > 1


async def test_the_same_event_at_two_processes_is_one_item(process: Opener) -> None:
    stores = [await process() for _ in range(3)]
    receipts = await asyncio.gather(*(store.accept([arrival("e1")], cap=9) for store in stores for _ in range(4)))
    assert sorted(batch[0].status for batch in receipts) == ["duplicate"] * 11 + ["new"]


async def test_a_silent_worker_loses_its_lane_and_can_write_nothing_more(process: Opener, over: Over) -> None:
    silent = await process(silent=True)
    claim, session = await in_session(silent, *exchange(1))
    await put(silent, "e2")
    other = await process()
    over(silent)
    async with asyncio.timeout(60):
        taken = await other.claim_next("other")
    assert (taken.item.id, taken.item.attempts) == (claim.item.id, 2)
    assert taken.lease.fence > claim.lease.fence
    for attempt in (
        silent.record_step(claim.lease, session.ref, claim.item, step(user("late"))),
        silent.finish_turn(claim.lease, session.ref, claim.item, step(user("late")), "answered", [outbound("o1")]),
        silent.open_reply(claim.lease, claim.item, outbound("o1")),
        silent.end_session(claim.lease, session.ref, "reset", START, None),
        silent.update_session(claim.lease, session.ref, title="late"),
        silent.release(claim.lease),
    ):
        with pytest.raises(SessionConflict):
            await attempt
    assert contents(await transcript(other, session.id)) == ["question 1", "answer 1"]
    assert await other.outbox(None, 9) == []
    await other.record_step(taken.lease, session.ref, taken.item, step(*exchange(2)))
    end = await finish(other, taken)
    assert end.next is not None
    assert end.next.inbound.event_id == "e2"


async def test_a_lane_goes_on_when_its_lease_ends_and_not_a_beat_later(
    process: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.store.redis.backend._LONGEST_BEAT", LEASE)  # a quarter of the lease by then
    silent = await process(silent=True, lease=0.5)
    claim = await claimed(silent)
    other = await process()
    async with asyncio.timeout(60):
        assert (await other.claim_next("other")).item.id == claim.item.id


async def test_a_silent_worker_that_nobody_took_for_dead_goes_on(process: Opener, over: Over) -> None:
    silent = await process(silent=True)
    claim = await claimed(silent)
    over(silent)
    assert (await finish(silent, claim)).next is None


async def test_a_server_that_was_away_for_longer_than_the_lease_takes_no_process_for_dead(tmp_path: Path) -> None:
    from tests.support.redis_server import running

    lease = 0.4  # seconds
    with running(tmp_path) as server:
        processes = [RedisStore(server.url, clock=SystemClock(), lease_seconds=lease) for _ in range(3)]
        for each in processes:
            await each.open()
        claims = [await claimed(each, f"e{number}", str(number)) for number, each in enumerate(processes)]
        for number, each in enumerate(processes):
            assert await each.emit([outbound(f"o{number}", str(number))])
        for _ in range(3):
            server.pause()
            await asyncio.sleep(2 * lease)
            server.resume()
            assert [(await each.status()).waiting for each in processes] == [3, 3, 3]
        for number, (each, claim) in enumerate(zip(processes, claims, strict=True)):
            await each.mark_sent(f"o{number}", None)
            assert (await finish(each, claim)).next is None
        (row, *_) = await processes[0].outbox(None, 9)
        assert (row.attempts, row.ambiguous) == (1, 0)
        await asyncio.gather(*(each.aclose() for each in processes))


async def test_a_lane_that_its_worker_gives_back_goes_to_another(process: Opener) -> None:
    one, two = await process(), await process()
    claim = await claimed(one)
    waiting = asyncio.create_task(two.claim_next("two"))
    await one.aclose()
    assert (await waiting).item.id == claim.item.id


async def test_a_signal_reaches_the_process_that_runs_the_turn(process: Opener) -> None:
    one, two = await process(), await process()
    heard: list[tuple[str, str]] = []
    one.on_signal(lambda where, kind: heard.append((str(where), kind)))
    claim = await claimed(one)
    assert await two.signal(key(), "stop", START)
    await eventually(lambda: heard)
    assert heard == [(str(key()), "stop")]
    assert await one.signals(claim.item) == ("stop",)


async def test_what_another_process_accepts_behind_a_turn_is_heard(process: Opener) -> None:
    one, two = await process(), await process()
    claim = await claimed(one)
    assert await one.waiting(key(), 9, behind=claim.item) == []
    await put(two, "e2")
    await eventually(lambda: key().text not in one._quiet)
    assert [item.inbound.event_id for item in await one.waiting(key(), 9, behind=claim.item)] == ["e2"]


async def test_a_signal_is_heard_after_the_connection_for_news_broke(
    process: Opener, redis_server: RedisServer
) -> None:
    one, two = await process(), await process()
    heard: list[str] = []
    one.on_signal(lambda where, kind: heard.append(kind))
    await claimed(one)
    with redis_server.client() as client:
        client.client_kill_filter(_type="pubsub")
    assert await two.signal(key(), "stop", START)
    await eventually(lambda: heard)


async def test_a_lease_has_one_holder_and_passes_on_when_it_falls_silent(process: Opener) -> None:
    one, two = await process(), await process()
    assert await one.hold("bot:1", "one", 60)
    assert not await two.hold("bot:1", "two", 60)
    assert await one.hold("bot:1", "one", 0.01)
    await eventually(lambda: two.hold("bot:1", "two", 60))
    assert not await one.hold("bot:1", "one", 60)
    await one.let_go("bot:1", "one")
    assert not await one.hold("bot:1", "one", 60)
    await two.let_go("bot:1", "two")
    assert await one.hold("bot:1", "one", 60)


async def test_what_a_silent_process_was_sending_is_taken_over_as_ambiguous(process: Opener, over: Over) -> None:
    silent = await process(silent=True)
    (row,) = await silent.emit([outbound("o1"), outbound("o2")])
    other = await process()
    told: list[bool] = []
    other.on_left(lambda: told.append(True))
    over(silent)
    await eventually(lambda: told)
    (taken,) = await other.claim_outbound(9)
    assert (taken.id, taken.attempts, taken.ambiguous) == (row.id, 2, 1)
    # The first sender wakes up: the platform did show it. The second need not repeat it again.
    assert await silent.mark_sent("o1", "m1") is None
    await other.mark_retry("o1", 999, ambiguous=True)
    (following,) = await other.claim_outbound(9)
    assert following.id == "o2"
    assert {each.id: (each.state, each.platform_message_id) for each in await other.outbox(None, 9)} == {
        "o1": ("sent", "m1"),
        "o2": ("sending", None),
    }


async def test_a_process_that_was_silent_does_not_own_what_it_claimed(process: Opener, over: Over) -> None:
    silent = await process(silent=True)
    (row,) = await silent.emit([outbound("o1")])
    assert silent.owns(row)
    silent.backend._clock._elapsed += LEASE  # as if it had been stopped: nothing woke, so nothing beat, meanwhile
    assert not silent.owns(row)
    other = await process()
    over(silent)
    (taken,) = await eventually(lambda: other.claim_outbound(9))
    assert (taken.id, taken.ambiguous) == ("o1", 1)
    await silent.mark_retry("o1", 0.0, ambiguous=False)  # what its outbox does then: nothing
    assert other.owns(taken)
    assert {each.state for each in await other.outbox(None, 9)} == {"sending"}


async def test_a_row_of_another_process_is_not_claimed_while_it_lives(process: Opener) -> None:
    one, two = await process(), await process()
    await one.emit([outbound("o1")])
    assert await two.emit([outbound("o2")]) == ()
    assert await two.claim_outbound(9) == []
    following = await one.mark_sent("o1", "m1")
    assert following is not None
    assert following.id == "o2"


async def test_all_that_a_process_had_put_off_is_taken_up_however_much_it_is(process: Opener) -> None:
    chats = [str(number) for number in range(15_000) if partition_of("test", str(number)) == 3][:700]
    one = await process(lease=0.4)
    await one.emit([outbound(f"o{chat}", chat) for chat in chats])
    await asyncio.gather(*(one.mark_retry(f"o{chat}", 0.0, ambiguous=False) for chat in chats))
    await one.aclose()
    other, shown = await process(lease=0.4), set()

    async def is_all() -> bool:
        shown.update(row.id for row in await other.claim_outbound(999))
        return len(shown) == len(chats)

    await eventually(is_all)


async def test_who_sends_to_a_platform_hears_of_rows_that_another_process_made(process: Opener) -> None:
    terminal, worker = await process(), await process()
    terminal.serve(runs=["test"], sends=["test"])
    worker.serve(runs=["test"], sends=[])
    told: list[bool] = []
    terminal.on_rows(lambda: told.append(True))
    claim = await claimed(worker)
    assert (await finish(worker, claim, outbound("o1"), outbound("o2"))).outbound == ()
    rows = await eventually(lambda: told and terminal.claim_outbound(9))
    assert [(row.id, row.attempts, row.ambiguous) for row in rows] == [("o1", 1, 0)]
    following = await terminal.mark_sent("o1", "m1")
    assert following is not None
    assert following.id == "o2"
    assert await worker.claim_outbound(9) == []


async def test_bypass_items_and_hooks_of_the_dead_are_left_to_the_living(process: Opener, over: Over) -> None:
    silent = await process(silent=True)
    await silent.accept([arrival("stop", bypass=True)], cap=9)
    claim, session = await in_session(silent)
    await silent.end_session(claim.lease, session.ref, "reset", START, None)
    other, third = await process(), await process()
    assert await other.claim_bypassed("w") == []
    assert await other.pending_hooks(9) == []
    told: list[bool] = []
    other.on_left(lambda: told.append(True))
    over(silent)
    await eventually(lambda: told)
    assert [(item.inbound.event_id, item.attempts) for item in await other.claim_bypassed("w")] == [("stop", 2)]
    assert [each.id for each in await other.pending_hooks(9)] == ["s1"]
    assert await third.pending_hooks(9) == [], "one of the living calls it"
    await other.hook_done("s1")
    assert await silent.pending_hooks(9) == []


async def test_a_due_session_is_claimed_by_one_process_and_again_when_that_dies(process: Opener, over: Over) -> None:
    silent = await process(silent=True)
    claim = await claimed(silent)
    await silent.open_session(claim.lease, Opening(session=new_session("s1", expires_at=START)))
    other = await process()
    assert len(await silent.claim_due_sessions(START + 1, 9)) == 1
    assert await other.claim_due_sessions(START + 1, 9) == []
    over(silent)
    await eventually(lambda: other.claim_due_sessions(START + 2, 9))


async def test_what_one_process_writes_another_reads(process: Opener) -> None:
    one, two = await process(), await process()
    claim, session = await in_session(one)
    assert await transcript(two, "s1") == []
    stored = await one.record_step(claim.lease, session.ref, claim.item, step(*exchange(1)))
    assert await transcript(two, "s1") == list(stored)
    stored += await one.record_step(claim.lease, session.ref, claim.item, step(*exchange(2)))
    assert await transcript(two, "s1") == list(stored)
    assert (await two.tip(key())) == await one.tip(key())
    assert len(turns_of(await two.search("question", key(), 9))) == 4  # they wait to be entered with some more


async def test_a_message_that_was_not_indexed_in_time_is_found_after_a_restart(
    process: Opener, redis_server: RedisServer
) -> None:
    one = await process()
    claim, session = await in_session(one)
    for text in ("a needle", "hay", "another needle"):
        await one.record_step(claim.lease, session.ref, claim.item, step(user(text)))
    assert len(turns_of(await one.search("needle", key(), 9))) == 3
    with redis_server.client(decode_responses=False) as client:  # as if the process had died before it could
        (index,) = client.keys("*:stem:*:needl")
        tag = index.partition(b":")[0]
        (message,) = [each for each in client.keys("*:message:*") if b"a needle" in client.get(each)]
        client.set(index, client.get(index)[8:])
        client.sadd(tag + b":unindexed", message.partition(b":message:")[2])
    other = await process()
    await eventually(lambda: _found(other, "a needle"))


async def test_what_is_forgotten_while_it_waits_for_the_index_never_comes_into_it(
    process: Opener, redis_server: RedisServer
) -> None:
    store = await process()
    claim, session = await in_session(store)
    said = await store.record_step(claim.lease, session.ref, claim.item, step(user("a needle"), user("a straw")))
    deed = Forgetting(
        id="d1",
        key=key(),
        at=START,
        item=None,
        tip=session.ref,
        removed=(note_of(said[0])["id"],),
        sessions=(Rewriting(session_id=session.id, freed=0, title=None, todos=()),),
    )
    await store.forget(claim.lease, deed)
    await store.aclose()  # what waits is entered before
    with redis_server.client() as client:
        assert client.keys("*:stem:*:straw")
        assert client.keys("*:stem:*:needl") == []


async def test_messages_are_entered_some_time_after_they_were_stored(
    process: Opener, redis_server: RedisServer
) -> None:
    store = await process()
    claim, session = await in_session(store)
    await store.record_step(claim.lease, session.ref, claim.item, step(user("a needle")))

    def entered() -> bool:
        with redis_server.client() as client:
            return bool(client.keys("*:stem:*:needl")) and not client.keys("*:unindexed")

    await eventually(entered)


async def _found(store: Store, text: str) -> bool:
    hits = await store.search("needle", key(), 9)
    return text in contents([hit.hit.message for hit in hits])
