"""What only the Redis store promises: what it refuses to use, and that nothing is lost or doubled while
its server dies, hangs, comes back, or does what it was asked and cannot say so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis
from redis.exceptions import ResponseError
from structlog.testing import capture_logs

from gateway.clock import SystemClock
from gateway.domain.message import user
from gateway.domain.session import Compaction
from gateway.errors import StoreUnavailable
from gateway.store.base import Lease, Opening, Store
from gateway.store.redis import RedisStore
from gateway.store.redis.admission import META
from tests.contract.store_kit import (
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
)
from tests.redis_proxy import LosingProxy, losing_proxy
from tests.waiting import eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.redis_server import RedisServer

pytest_plugins = ["tests.redis_server"]

Opener = Callable[..., RedisStore]


@pytest.fixture
def server(redis_server: RedisServer) -> RedisServer:
    """An empty server."""
    with redis_server.client() as client:
        client.flushall()
    return redis_server


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Callable[..., RedisServer]]:
    """Makes servers, not yet started, that a test may ill-treat."""
    from tests.redis_server import RedisServer

    servers: list[RedisServer] = []

    def make(**options: str) -> RedisServer:
        servers.append(RedisServer(tmp_path / str(len(servers)), **options))
        return servers[-1]

    yield make
    for made in servers:
        made.kill()


@pytest.fixture
async def make() -> AsyncIterator[Opener]:
    """Makes stores, not yet open, and closes them in the end."""
    stores: list[RedisStore] = []

    def build(url: str, **options: Any) -> RedisStore:
        stores.append(RedisStore(url, clock=SystemClock(), **{"timeout": 1.0, "patience": 0.2, **options}))
        return stores[-1]

    yield build
    await asyncio.gather(*(store.aclose() for store in stores))


# -- what is refused ----------------------------------------------------------------------------


async def test_another_programs_database_is_left_alone(server: RedisServer, make: Opener) -> None:
    with server.client() as client:
        client.set("cart:7", "apples")
        with pytest.raises(StoreUnavailable, match=r"another program.*empty one"):
            await make(server.url).open()
        assert client.keys("*") == ["cart:7"]
        client.flushall()
        client.hset(META, mapping={"app": "shop", "id": "1"})
        with pytest.raises(StoreUnavailable, match="another program"):
            await make(server.url).open()


async def test_a_newer_database_is_left_alone_and_a_little_newer_one_is_used(server: RedisServer, make: Opener) -> None:
    with server.client() as client:
        client.hset(META, mapping={"app": "legato", "id": "1", "format": 3, "readable_from": 2, "partitions": 16})
        with pytest.raises(StoreUnavailable, match=r"newer Legato.*upgrade"):
            await make(server.url).open()
        client.hset(META, mapping={"format": 2, "readable_from": 1, "colour": "blue"})
        await make(server.url).open()
        client.hset(META, "partitions", 32)
        with pytest.raises(StoreUnavailable, match="32 partitions"):
            await make(server.url).open()


async def test_a_wrong_password_is_said_at_once(own_server: Callable[..., RedisServer], make: Opener) -> None:
    server = own_server(requirepass="secret")
    server.start()
    for user_info in ("", ":wrong@"):
        with pytest.raises(StoreUnavailable, match=r"password.*store\.url") as caught:
            await make(f"redis://{user_info}127.0.0.1:{server.port}/0").open()
        assert "wrong@" not in str(caught.value)
    await make(f"redis://:secret@127.0.0.1:{server.port}/0").open()


async def test_a_server_that_may_evict_is_refused(own_server: Callable[..., RedisServer], make: Opener) -> None:
    server = own_server(maxmemory="100mb", maxmemory_policy="allkeys-lru")
    server.start()
    with pytest.raises(StoreUnavailable, match=r"allkeys-lru.*noeviction"):
        await make(server.url).open()


async def test_an_old_server_is_refused(make: Opener) -> None:
    async def old(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            if line.strip().upper() == b"INFO":
                info = b"# Server\r\nredis_version:6.2.14\r\n"
                writer.write(b"$%d\r\n%s\r\n" % (len(info), info))
            elif line.strip().upper() in (b"CLIENT", b"SELECT"):
                writer.write(b"+OK\r\n")
        writer.close()

    server = await asyncio.start_server(old, "127.0.0.1", 0)
    with pytest.raises(StoreUnavailable, match=r"version 6\.2\.14.*7\.0.*upgrade"):
        await make(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0").open()
    server.close()


async def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(StoreUnavailable, match=r"store\.url"):
        RedisStore("http://example.org", clock=SystemClock())


async def test_a_closed_store_says_so(server: RedisServer, make: Opener) -> None:
    store = make(server.url)
    await store.open()
    await store.aclose()
    await store.aclose()
    for call in (store.tip(key()), store.status(), store.emit([outbound("o1")]), put(store, "e1")):
        with pytest.raises(StoreUnavailable, match="closed"):
            await call


async def test_a_full_server_stores_nothing_and_says_so(own_server: Callable[..., RedisServer], make: Opener) -> None:
    server = own_server()
    server.start()
    store = make(server.url)
    await store.open()
    claim, session = await in_session(store)
    with server.client() as client:
        client.config_set("maxmemory", "1")
        with pytest.raises(StoreUnavailable, match="out of memory"):
            await store.record_step(claim.lease, session.ref, claim.item, step(user("x")))
        client.config_set("maxmemory", "0")
    await store.record_step(claim.lease, session.ref, claim.item, step(user("fits")))
    assert contents(await transcript(store, "s1")) == ["fits"]


@pytest.mark.parametrize(
    ("refuse", "allow", "why"),
    [
        ("CONFIG SET min-replicas-to-write 1", "CONFIG SET min-replicas-to-write 0", "Not enough good replicas"),
        ("REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "read only replica"),
        ("ACL SETUSER default -eval -evalsha", "ACL SETUSER default +@all", "not let this user"),
    ],
)
async def test_a_server_that_will_not_write_for_now_is_unavailable(
    own_server: Callable[..., RedisServer], make: Opener, refuse: str, allow: str, why: str
) -> None:
    server = own_server()
    server.start()
    store = make(server.url)
    await store.open()
    claim, session = await in_session(store)
    with server.client() as client:
        client.execute_command(refuse)
        with pytest.raises(StoreUnavailable, match=why):
            await store.record_step(claim.lease, session.ref, claim.item, step(user("x")))
        client.execute_command(allow)
    await eventually(lambda: again(lambda: store.record_step(claim.lease, session.ref, claim.item, step(user("fits")))))
    assert contents(await transcript(store, "s1")) == ["fits"]


async def test_a_server_that_is_busy_with_a_script_is_waited_for(
    own_server: Callable[..., RedisServer], make: Opener
) -> None:
    server = own_server(busy_reply_threshold="1")
    server.start()
    store = make(server.url, timeout=20.0, patience=20.0)
    await store.open()
    with server.client() as client, server.client() as other:
        busy = asyncio.create_task(asyncio.to_thread(endless, other))
        await eventually(lambda: is_busy(client))
        putting = asyncio.create_task(put(store, "e1"))
        with capture_logs() as said:
            await eventually(lambda: any(line["event"] == "store_unreachable" for line in said))
        client.script_kill()
        await busy
    assert (await putting)[0].status == "new"


def endless(client: Redis) -> None:
    """Run a script until it is killed."""
    with suppress(ResponseError):
        client.eval("while true do end", 0)


def is_busy(client: Redis) -> bool:
    """Whether the server answers nobody because a script runs."""
    try:
        client.ping()
    except ResponseError:
        return True
    return False


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


async def test_what_was_stored_outlives_the_server(own_server: Callable[..., RedisServer], make: Opener) -> None:
    server = own_server()
    server.start()
    store = make(server.url)
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
    assert len(await store.search("question", key(), 9)) == 2


async def again(call: Callable[[], Any]) -> Any:
    """What the call gives; None while the store cannot be used."""
    try:
        return await call()
    except StoreUnavailable:
        return None


async def test_a_server_that_hangs_loses_nothing_and_doubles_nothing(
    own_server: Callable[..., RedisServer], make: Opener
) -> None:
    server = own_server()
    server.start()
    store = make(server.url, timeout=0.2, lease_seconds=60.0)
    await store.open()
    claim, session = await in_session(store)
    server.pause()
    step_ = store.record_step(claim.lease, session.ref, claim.item, step(*exchange(1)))
    recording = asyncio.create_task(step_)
    with pytest.raises(StoreUnavailable):
        await store.tip(key())
    await asyncio.sleep(0.5)  # it is sent again and again meanwhile
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


async def test_a_ready_stream_that_is_gone_is_made_again(server: RedisServer, make: Opener) -> None:
    store = make(server.url)
    await store.open()
    await finish(store, await claim_of(store, "e1"))
    with server.client() as client:
        client.delete(*client.keys("*:ready:*"))
    await finish(store, await claim_of(store, "e2"))


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


async def test_a_store_that_was_replaced_is_said(server: RedisServer, make: Opener) -> None:
    store = make(server.url, lease_seconds=0.4)
    await store.open()
    with server.client() as client, capture_logs() as said:
        client.delete(*client.keys("*members"))
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
    claim = await losing(store.claim_next("w"))
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
    following = (await losing(store.mark_sent("o1", "m1"))).next
    assert (following.id, following.attempts, following.ambiguous) == ("o2", 1, 0)
    await losing(store.mark_retry("o2", START, ambiguous=True))
    (again_,) = await losing(store.claim_outbound(START, 9))
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
    assert step_count == 14


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
