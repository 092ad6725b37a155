"""The servers that the Redis store refuses, or takes for unavailable, and its words about them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from redis import Redis
from redis.exceptions import ResponseError
from structlog.testing import capture_logs

from gateway.domain.message import user
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreUnavailable
from gateway.store.redis import RedisStore
from gateway.store.redis.admission import META
from gateway.store.space import Space
from tests.support.fakes import ManualClock
from tests.support.model import PATIENCE
from tests.support.store_kit import (
    START,
    contents,
    in_session,
    key,
    outbound,
    put,
    step,
    transcript,
)
from tests.support.waiting import again, eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_stores"]

Opener = Callable[..., RedisStore]


# -- what is refused ----------------------------------------------------------------------------


async def test_a_step_without_a_partition_writes_nowhere(server: RedisServer, make: Opener) -> None:
    def invent(space: Space, name: str) -> None:
        raise AssertionError(f"{name} was written")

    store = make(server.url)
    await store.open()
    with pytest.raises(TypeError, match=r"routes\.py.*the step invent"):
        await store.backend.run(invent, "cart:7")


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
        client.hset(META, mapping={"app": "legato", "id": "1", "format": 4, "readable_from": 3, "partitions": 16})
        with pytest.raises(StoreUnavailable, match=r"newer Legato.*Upgrade"):
            await make(server.url).open()
        client.hset(META, mapping={"format": 3, "readable_from": 2, "colour": "blue"})
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


async def test_a_database_that_the_server_has_not_is_said_at_once(server: RedisServer, make: Opener) -> None:
    with pytest.raises(StoreUnavailable, match=r"no such database.*Correct the number"):
        await make(server.url.replace("/0", "/99")).open()


async def test_a_server_that_may_evict_is_refused(own_server: Callable[..., RedisServer], make: Opener) -> None:
    server = own_server(maxmemory="100mb", maxmemory_policy="allkeys-lru")
    server.start()
    with pytest.raises(StoreUnavailable, match=r"allkeys-lru.*noeviction"):
        await make(server.url).open()


async def test_a_server_that_may_evict_by_now_is_told_of(own_server: Callable[..., RedisServer]) -> None:
    server = own_server()
    server.start()
    clock = ManualClock(START)
    store = RedisStore(server.url, clock=clock, timeout=PATIENCE)
    await store.open()
    with server.client() as client, capture_logs() as said:
        await clock.advance(61.0)
        client.config_set("maxmemory-policy", "allkeys-lru")
        await eventually(lambda: said_after(clock, said))
    (line, *_) = [line for line in said if line["event"] == "store_may_be_evicted"]
    assert (line["policy"], "noeviction" in line["advice"]) == ("allkeys-lru", True)
    await store.aclose()


async def said_after(clock: ManualClock, said: Sequence[Any]) -> bool:
    """Say whether the line came, a minute later."""
    await clock.advance(61.0)
    return any(line["event"] == "store_may_be_evicted" for line in said)


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
    with pytest.raises(StoreUnavailable, match=r"version 6\.2\.14.*7\.0.*Upgrade"):
        await make(f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}/0").open()
    server.close()


async def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(StoreUnavailable, match=r"store\.url"):
        RedisStore("http://example.org", clock=SystemClock())


async def test_a_store_that_is_closed_at_once_leaves_no_warning(server: RedisServer, make: Opener) -> None:
    with capture_logs() as said:
        store = make(server.url)
        await store.open()
        await store.aclose()
    assert [line["event"] for line in said if line["log_level"] != "info"] == []


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
    store = make(server.url, patience=0.2)
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
    store = make(server.url, patience=0.2)
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
    """Say whether the server answers nobody because a script runs."""
    try:
        client.ping()
    except ResponseError:
        return True
    return False
