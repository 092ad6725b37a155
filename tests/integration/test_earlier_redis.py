"""A database of the layout before there were records of kinds, opened by today's program: everything is there.

`redis-1.json.xz` has the keys of a database that its own program filled with something of everything, as JSON: type,
value (bytes as Latin-1), and when it ends.
"""

from __future__ import annotations

import asyncio
import json
import lzma
import re
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from gateway.domain.message import note_of
from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreError, StoreOutdated, StoreUnavailable
from gateway.runtime.structs import replace
from gateway.store.redis import RedisStore, admission, bringing
from gateway.store.redis.admission import META
from gateway.store.redis.endpoint import Endpoint
from gateway.store.shared.facts import Record
from gateway.store.transfer.redis_database import RedisSource
from tests.support import migration_kit
from tests.support.migration_kit import move, shown, worked_off

if TYPE_CHECKING:  # at run time they are plugins, which nobody may import first
    from tests.support.migration_places import Places
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.migration_places"]

THEN: Final = Path(__file__).parents[1] / "fixtures" / "stores" / "redis-1.json.xz"
_NUMBERS: Final = re.compile(r"'derived_from': \[[^]]*\]|'[0-9]{16}'|(due|shown)_at=1[0-9.]+")
_PUT: Final[dict[str, Callable[..., Any]]] = {
    "string": lambda client, key, value: client.set(key, value),
    "hash": lambda client, key, value: client.hset(key, mapping=dict(value)),
    "list": lambda client, key, value: client.rpush(key, *value),
    "set": lambda client, key, value: client.sadd(key, *value),
    "zset": lambda client, key, value: client.zadd(key, dict(value)),
}


def raw(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("latin-1")
    return [raw(each) for each in value] if isinstance(value, list) else value


def put_then(server: RedisServer) -> None:
    """The database as it was left."""
    keys = json.loads(lzma.decompress(THEN.read_bytes()))
    with server.client() as client:
        for key, (kind, value, until) in keys.items():
            _PUT[kind](client, raw(key), raw(value))
            if until > 0:
                client.pexpireat(raw(key), until)


_FORGETS = re.compile(r"(?<=id='forgets', ).*?system_prompt='[^']*'")


def contents(server: RedisServer) -> dict[str, bytes]:
    """All keys but those that only a look changes."""
    with server.client() as client:
        names = [each for each in client.keys("*") if not re.search("^legato:|:answers:|:commits:", each)]
        return {name: client.dump(name) for name in names}


def is_the_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Say whether two stores show the same, but for numbers of messages and items, times, and the prompt of a session
    in which something was forgotten: an earlier version kept it until the next turn made it anew."""
    for what in other:
        first, second = (_FORGETS.sub("", _NUMBERS.sub("", repr(each[what]))) for each in (one, other))
        assert first == second, what


@pytest.fixture
def then(redis_server: RedisServer, places: Places, monkeypatch: pytest.MonkeyPatch) -> RedisServer:
    """A server with a database of then."""
    monkeypatch.setattr(admission, "_LOOK_AGAIN", 0.01)
    monkeypatch.setattr(bringing, "_LOOK_AGAIN", 0.01)
    then = replace(migration_kit.FULL_SESSION, project="", temporary=False)  # there was neither
    monkeypatch.setattr(migration_kit, "FULL_SESSION", then)
    put_then(redis_server)
    return redis_server


async def test_everything_is_there_and_what_waited_is_worked_off(then: RedisServer, places: Places) -> None:
    here, there = places.redis
    await admitted(then)  # by a clock that runs
    brought, filled = await places.open(here), await places.open(there)
    await migration_kit.fill(filled)
    await places.leave(filled)
    filled = await places.open(there)
    is_the_same(await shown(brought), await shown(filled))
    (child,) = [each for each in await brought.sessions(None, 999) if each.id == "s2b"]
    (parent,) = [each for each in await brought.sessions(None, 999) if each.id == "s2"]
    said = {note_of(each)["id"] for each in await brought.transcript(parent)}
    assert set(note_of((await brought.transcript(child))[0])["derived_from"]) <= said
    is_the_same(await worked_off(brought), await worked_off(filled))
    with then.client() as client:
        assert client.hmget(META, "format", "readable_from") == ["2", "2"]
        kinds = {name.split(":")[1] for name in client.keys("{p*")}
        assert not kinds & {"inbox", "transcript", "tip", "new", "bringing", "events"}


async def test_calls_of_an_erased_conversation_and_of_a_helper_count_as_they_did(
    then: RedisServer, places: Places
) -> None:
    with then.client() as client:
        ((entry, at),) = client.zrange("{p13}:ledger", 0, 0, withscores=True)
        number, _, text = entry.partition("|")
        call = json.loads(text)
        for more in ({"session": "", "key": ""}, {"session": "s2", "key": "test/chat=1"}):
            number = str(int(number) + 2)
            client.zadd("{p13}:ledger", {f"{number}|{json.dumps(call | more)}": at})
    await admitted(then)
    store = await places.open(places.redis[0])
    assert sorted((each.label, each.calls) for each in await store.usage(0, "key")) == [("", 1), ("test/chat=1", 3)]


async def test_it_is_moved_into_a_file_as_it_is(then: RedisServer, places: Places) -> None:
    before = contents(then)
    there = await places.filled(places.redis[1])
    old, new = places.sqlite("old.db"), places.sqlite("new.db")
    report = await move(places.redis[0], old)
    await move(there, new)
    assert report.copied == report.verified
    assert contents(then) == before
    is_the_same(await shown(await places.open(old)), await shown(await places.open(new)))


async def test_a_look_leaves_it_to_a_gateway(then: RedisServer) -> None:
    before = contents(then)
    with pytest.raises(StoreOutdated, match="Stop every process of it"):
        await RedisStore(then.url, clock=SystemClock(), waits=False).open()
    assert contents(then) == before


async def test_two_that_start_at_once_bring_it_over_once(then: RedisServer, places: Places) -> None:
    told: list[str] = []
    stores = [RedisStore(then.url, clock=SystemClock(), told=told.append) for _ in range(2)]
    await asyncio.gather(*(store.open() for store in stores))
    one, other = [await store.sessions(None, 999) for store in stores]
    assert one == other
    assert len(one) > 5
    assert sorted(each.split(" ")[0] for each in told) == ["Another", "Updating"]
    await asyncio.gather(*(store.aclose() for store in stores))


async def test_a_start_that_saw_a_store_half_made_leaves_what_is_in_it(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = admission._admit

    async def early(endpoint: Endpoint, *, is_last: bool) -> Any:
        meta = await look(endpoint, is_last=is_last)
        return meta and {"id": meta["id"]}

    redis_server.empty()
    monkeypatch.setattr(admission, "_LOOK_AGAIN", 0.01)
    first, second = (RedisStore(redis_server.url, clock=SystemClock()) for _ in range(2))
    await first.open()
    await first.set_notes("letters", {"anna": "hello"})
    monkeypatch.setattr(admission, "_admit", early)
    await second.open()
    assert await second.notes("letters") == {"anna": "hello"}
    await asyncio.gather(first.aclose(), second.aclose())


async def test_whoever_gives_up_lets_no_earlier_process_in_while_another_brings_it_over(
    then: RedisServer, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill, begun, waits, goes_on = bringing.Attempt._fill, asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def held(attempt: bringing.Attempt) -> None:
        begun.set()
        await goes_on.wait()
        await fill(attempt)

    def told(number: int, sentence: str) -> None:
        if sentence.startswith("Another"):
            waiting.append(number)
            waits.set()

    waiting: list[int] = []
    monkeypatch.setattr(bringing.Attempt, "_fill", held)
    stores = [RedisStore(then.url, clock=SystemClock(), told=partial(told, number)) for number in range(2)]
    opened = [asyncio.create_task(store.open()) for store in stores]
    await begun.wait()
    await waits.wait()
    begun.clear()
    second, first = opened[waiting[0]], opened[1 - waiting[0]]
    first.cancel()
    await asyncio.wait([first])
    await begun.wait()
    with then.client() as client:
        assert client.hget(META, "readable_from") == "2"
    goes_on.set()
    await second
    await asyncio.gather(*(store.aclose() for store in stores))


async def test_what_cannot_be_brought_over_is_the_earlier_version_s_also_after_a_death(
    then: RedisServer, places: Places
) -> None:
    with then.client() as client:
        client.hset(META, "readable_from", "2")  # by a process that was killed
        client.delete(*client.keys("{p??}:message:*"))
        with pytest.raises(StoreError, match="The store is damaged"):
            await admitted(then)
        assert client.hget(META, "readable_from") == "1"


async def test_a_start_that_is_broken_off_closes_its_file_behind_what_is_written(
    then: RedisServer, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, begun, goes_on, written = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), list[int]()

    class Held(bringing.Filled):
        def put(self, page: Sequence[Record]) -> None:
            loop.call_soon_threadsafe(begun.set)
            goes_on.wait()
            super().put(page)
            written.append(len(page))

    monkeypatch.setattr("gateway.store.sqlite.bringing.Filled", Held)
    start = asyncio.create_task(admitted(then))
    await begun.wait()
    start.cancel()
    for _ in range(9):
        await asyncio.sleep(0)
    goes_on.set()
    await asyncio.wait([start])
    assert start.cancelled()
    assert len(written) == 1


async def test_a_server_without_room_is_waited_for_and_named(then: RedisServer, places: Places) -> None:
    told: list[str] = []
    with then.client() as client:

        def heard(sentence: str) -> None:
            told.append(sentence)
            client.config_set("maxmemory", "0")

        client.config_set("maxmemory", "1")
        store = RedisStore(then.url, clock=SystemClock(), told=heard)
        await store.open()
        await store.aclose()
    assert "is out of memory: raise its maxmemory. Legato waits" in told[0]


async def test_a_migration_that_reads_it_by_then_is_left_alone(
    then: RedisServer, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, sources = admission.check_free, [RedisSource(then.url, clock=SystemClock())]

    async def checked(endpoint: Endpoint) -> None:
        await check(endpoint)
        while sources:
            await sources[-1].open()
            migrating.append(sources.pop())

    migrating: list[RedisSource] = []
    before = contents(then)
    monkeypatch.setattr(admission, "check_free", checked)
    with pytest.raises(StoreUnavailable, match="`legato migrate` works on the database"):
        await admitted(then)
    await migrating[0].aclose()
    assert contents(then) == before


class Killed(BaseException):
    """The process is no more."""


async def test_whenever_it_is_killed_the_next_start_goes_on(
    then: RedisServer, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It dies at each of its commands in turn, as they come."""
    whole = await sizes(then)
    send, left = bringing.Wire._made, 0

    def counted(*args: Any, **options: Any) -> Any:
        nonlocal left
        left -= 1
        if left == 0:
            raise Killed
        return send(*args, **options)

    monkeypatch.setattr(bringing.Wire, "_made", counted)
    deaths = 0
    step = 160
    for at in range(1, 100_000, step):
        then.empty()
        put_then(then)
        left = at
        try:
            await admitted(then)
        except Killed:
            deaths += 1
            left = 0
            with then.client() as client:
                client.delete(bringing.LOCK)
            await admitted(then)
            assert await sizes(then) == whole, at
        else:
            break
    assert deaths > 3


async def admitted(server: RedisServer) -> None:
    store = RedisStore(server.url, clock=SystemClock())
    await store._backend._admitted()  # type: ignore[attr-defined]


async def sizes(server: RedisServer) -> dict[str, int]:
    """How many keys there are of a kind, once the database is brought over."""
    await admitted(server)
    found: dict[str, int] = {}
    with server.client() as client:
        for name in client.keys("{p*"):
            kind = name.split(":")[1]
            found[kind] = found.get(kind, 0) + 1
    return found
