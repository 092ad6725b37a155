"""The promise of the Redis store alone: nothing is lost or doubled while its server dies, hangs, comes back, or obeys
and cannot say so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from gateway.domain.message import user
from gateway.domain.session import Compaction
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.port import Store
from gateway.store.records import Lease, Opening
from gateway.store.redis import RedisStore
from gateway.store.redis.admission import META, admit
from gateway.store.redis.endpoint import Endpoint
from gateway.store.redis.scripts import script
from gateway.store.redis.wire import Wire
from tests.support.redis_proxy import LosingProxy, losing_proxy
from tests.support.store_kit import (
    START,
    arrival,
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
from tests.support.waiting import again, eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_stores"]

Opener = Callable[..., RedisStore]


# -- a server that goes away --------------------------------------------------------------------


async def test_opening_waits_for_a_server_that_is_not_there_yet(
    own_server: Callable[..., RedisServer], make: Opener
) -> None:
    server = own_server()
    store = make(server.url)
    opening = asyncio.create_task(store.open())
    await asyncio.sleep(0.1)
    assert not opening.done()
    await asyncio.to_thread(server.start)
    await opening
    assert (await put(store, "e1"))[0].status == "new"


async def test_a_server_that_is_too_slow_to_tell_the_time_stops_nobody_from_opening(
    server: RedisServer, make: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(_: Wire) -> float:
        raise StoreUnavailable("The Redis server cannot be used now: TimeoutError.")

    monkeypatch.setattr(Wire, "time", slow)
    store = make(server.url)
    await store.open()
    assert (await put(store, "e1"))[0].status == "new"


async def test_what_was_stored_outlives_the_server(own_server: Callable[..., RedisServer], make: Opener) -> None:
    server = own_server()
    server.start()
    store = make(server.url, patience=0.2)
    await store.open()
    claim, session = await in_session(store)
    await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(1)))
    await put(store, "e2")
    server.kill()
    with pytest.raises(StoreUnavailable, match="cannot be used now"):
        await store.tip(key())
    with pytest.raises(StoreUnavailable, match="cannot be used now"):
        await put(store, "e3")
    await asyncio.to_thread(server.start)
    assert (await eventually(lambda: again(lambda: put(store, "e3"))))[0].status == "new"
    end = await store.finish_turn(
        claim.lease, session.ref, claim.item, step(*exchange(2)), "answered", [outbound("o1")]
    )
    assert end.next is not None
    assert end.next.inbound.event_id == "e2"
    assert len(await transcript(store, "s1")) == 4
    assert len(turns_of(await store.search("question", key(), 9))) == 4


async def test_a_server_that_hangs_loses_nothing_and_doubles_nothing(
    own_server: Callable[..., RedisServer], make: Opener
) -> None:
    server = own_server()
    server.start()
    store = make(server.url, timeout=2.0, patience=0.2, lease_seconds=600.0)
    await store.open()
    claim, session = await in_session(store)
    server.pause()
    step_ = store.record_step(claim.lease, session.ref, claim.item, step(*exchange(1)))
    recording = asyncio.create_task(step_)
    with pytest.raises(StoreUnavailable):
        await store.tip(key())
    await asyncio.sleep(2.2)  # it is sent again meanwhile
    assert not recording.done()
    server.resume()
    await recording
    await eventually(lambda: again(lambda: store.tip(key())))
    assert contents(await transcript(store, "s1")) == ["question 1", "answer 1"]
    assert (await store.session("s1")).message_count == 2


async def test_scripts_that_the_server_forgot_are_sent_again(server: RedisServer, make: Opener) -> None:
    store = make(server.url)
    await store.open()
    await put(store, "e1")
    with server.client() as client:
        client.script_flush()
    assert (await put(store, "e2"))[0].waiting == 1


async def claim_of(store: Store, event_id: str) -> Any:
    """A claim of a new message."""
    await put(store, event_id)
    return await store.claim_next("w")


async def test_a_store_that_was_emptied_is_said_and_gone_on_with(server: RedisServer, make: Opener) -> None:
    store = make(server.url, lease_seconds=0.4)
    await store.open()
    await finish(store, await claim_of(store, "e1"))
    with server.client() as client, capture_logs() as said:
        facts = client.hgetall(META)
        client.flushall()
        await eventually(lambda: client.hgetall(META) == facts)
    assert [line["event"] for line in said].count("store_was_emptied") == 1
    other = make(server.url)
    await other.open()
    signals: list[str] = []
    other.on_signal(lambda key, kind: signals.append(kind))
    await claim_of(other, "e1")
    await store.signal(key(), "stop", START)
    await eventually(lambda: signals == ["stop"])


class Pausing(SystemClock):
    """A clock whose pauses take no time, and let something happen."""

    def __init__(self, happens: Callable[[], object]) -> None:
        self.pauses = 0
        self._happens = happens

    async def sleep(self, seconds: float) -> None:
        self.pauses += 1
        self._happens()


async def test_a_process_that_starts_beside_an_emptied_store_waits_for_its_mark(server: RedisServer) -> None:
    facts: Any = {"app": "legato", "id": "theirs", "format": 2, "readable_from": 2, "partitions": 16}
    with server.client() as client:
        client.set("{p03}:member:another process", "- {}")  # it has beaten, and looks why it was forgotten
        clock = Pausing(lambda: client.hset(META, mapping=facts))
        endpoint = Endpoint(server.url, timeout=5)
        assert await admit(endpoint, clock, waits=False, told=print) == "theirs"
        assert clock.pauses == 1
        client.delete(META)
        clock = Pausing(lambda: None)  # that process is gone
        assert await admit(endpoint, clock, waits=True, told=print) == client.hget(META, "id")
        assert clock.pauses == 10
        client.delete(META)
        client.set("{p3}:cart", "apples")
        with pytest.raises(StoreUnavailable, match="another program"):
            await admit(endpoint, clock, waits=True, told=print)


async def test_a_store_that_was_replaced_is_said(server: RedisServer, make: Opener) -> None:
    store = make(server.url, lease_seconds=0.4)
    await store.open()
    with server.client() as client, capture_logs() as said:
        client.delete(*client.keys("*member:*"), *client.keys("*i:member.members:"))
        client.hset(META, "id", "another")
        await eventually(lambda: any(line["event"] == "store_was_replaced" for line in said))
        assert client.hget(META, "id") == "another"


# -- lost answers -------------------------------------------------------------------------------


@pytest.fixture
async def proxy(server: RedisServer) -> AsyncIterator[LosingProxy]:
    """A way to the server that can lose answers."""
    async with losing_proxy(server.port) as made:
        yield made


@pytest.mark.parametrize("losses", [1, 3])
async def test_a_step_whose_answer_was_lost_is_done_once(proxy: LosingProxy, make: Opener, losses: int) -> None:
    store = make(proxy.url, lease_seconds=600.0, patience=60.0)
    await store.open()
    step_count = 0

    async def losing(call: Any) -> Any:
        nonlocal step_count
        proxy.lose, before = losses, proxy.lost
        result = await call
        assert proxy.lost > before
        proxy.lose = 0
        step_count += 1
        return result

    receipts = await losing(store.accept([arrival("e1"), arrival("e2")], cap=9))
    assert [receipt.status for receipt in receipts] == ["new", "new"]
    at_once = True  # the lane was claimed as its message was accepted
    claim = await (store.claim_next("w") if at_once else losing(store.claim_next("w")))
    assert claim.item.attempts == 1
    session = await losing(store.open_session(claim.lease, Opening(session=new_session("s1"))))
    await losing(store.record_step(claim.lease, session.ref, claim.item, step(*exchange(1))))
    child = await losing(continued(store, claim.lease, session))
    end = await losing(
        store.finish_turn(claim.lease, child.ref, claim.item, step(*exchange(2)), "answered", [outbound("o1")])
    )
    assert [(row.id, row.attempts) for row in end.outbound] == [("o1", 1)]
    assert (end.next.inbound.event_id, end.next.attempts) == ("e2", 1)
    assert await losing(store.emit([outbound("o2")])) == ()
    following = await losing(store.mark_sent("o1", "m1"))
    assert (following.id, following.attempts, following.ambiguous) == ("o2", 1, 0)
    await losing(store.mark_retry("o2", 0.0, ambiguous=True))
    (again_,) = await losing(store.claim_outbound(9))
    assert (again_.attempts, again_.ambiguous) == (2, 1)
    assert await losing(store.signal(key(), "stop", START))
    assert await losing(store.end_session(claim.lease, child.ref, "reset", START, None)) is None
    await losing(store.release(claim.lease))
    claim = await losing(store.claim_next("w"))
    assert claim.item.attempts == 1
    assert contents(await transcript(store, "s1")) == ["question 1", "answer 1"]
    assert contents(await transcript(store, "s2")) == ["summary", "question 2", "answer 2"]
    figures = await store.status()
    assert (figures.waiting, figures.unsent, figures.sessions) == (1, 1, 2)
    assert step_count == 14 - at_once


async def continued(store: Store, lease: Lease, session: Any) -> Any:
    """The session's continuation, which holds a summary alone."""
    child = new_session("s2", parent_id="s1", compaction_count=1)
    run = Compaction(
        at=START,
        parent_id="s1",
        child_id="s2",
        trigger="manual",
        messages_before=2,
        messages_after=1,
        tokens_before=7,
        tokens_after=1,
    )
    opening = Opening(session=child, transcript=[user("summary", tokens=1, summary=True)])
    return await store.continue_session(lease, session.ref, opening, 2, run)


async def test_what_keeps_the_search_index_may_be_done_twice(server: RedisServer) -> None:
    client = server.client()

    def twice(name: str, *arguments: str) -> None:
        found = []
        for _ in range(2):
            assert client.eval(script(name).text, 1, "{p00}:seq", "w", "1", "news", *arguments) == ["ok"]
            kept = [each for each in client.keys("*") if client.type(each) == "string"]
            found.append({each: client.execute_command("GET", each, NEVER_DECODE=True) for each in kept})
        assert found[0] == found[1]

    for number in ("16", "32"):
        client.set(f"{{p00}}:message:{number}", "1 {}")
        client.sadd("{p00}:unindexed", number)
        twice("index", "me", "all", "1", "1", number, "2", "*", "1", "word", "1")
    assert client.strlen("{p00}:stem:me:word") == 16
    assert client.smembers("{p00}:unindexed") == set()
    client.sadd("{p00}:gone", "16")
    twice("leave_index", "me", "16", "2", "*", "word")
    twice("forget_entries", "1", "16")
    assert client.strlen("{p00}:stem:me:word") == 8
    assert client.exists("{p00}:gone") == 0
    client.close()


async def test_answers_lost_at_random_leave_every_lane_in_order(proxy: LosingProxy, make: Opener) -> None:
    store = make(proxy.url, lease_seconds=600.0, patience=60.0)
    await store.open()
    chats, each = 8, 6
    order: dict[str, list[str]] = {}

    async def feed(chat: str) -> None:
        for number in range(each):
            await store.accept([arrival(f"{chat}-{number}", chat)], cap=100)
            proxy.lose = max(proxy.lose, (number + int(chat)) % 2)

    async def work() -> None:
        while True:
            claim = await store.claim_next("w")
            item: Any = claim.item
            while item is not None:
                order.setdefault(claim.lease.key.chat, []).append(item.inbound.event_id)
                assert item.attempts == 1
                item = (await store.finish_turn(claim.lease, None, item, None, "answered", ())).next

    workers = [asyncio.create_task(work()) for _ in range(4)]
    await asyncio.gather(*(feed(str(chat)) for chat in range(chats)))
    await eventually(lambda: sum(map(len, order.values())) >= chats * each or any(task.done() for task in workers))
    proxy.lose = 0
    for worker in workers:
        worker.cancel()
    results = await asyncio.gather(*workers, return_exceptions=True)
    assert all(isinstance(result, asyncio.CancelledError) for result in results)
    assert proxy.lost
    assert order == {str(chat): [f"{chat}-{n}" for n in range(each)] for chat in range(chats)}
    assert (await store.status()).waiting == 0
