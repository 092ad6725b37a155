"""The refusals of `legato migrate`, the differences it finds, and its words about them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.runtime.clock import SystemClock
from gateway.runtime.errors import StoreError, StoreLocked, StoreUnavailable
from gateway.store.redis.backend import RedisBackend
from gateway.store.redis.mark import LEASE
from gateway.store.redis.partitions import partition_of_name, prefix
from gateway.store.transfer import migrate, source_at
from gateway.store.transfer.redis_database import RedisSource
from gateway.store.transfer.sqlite_file import SqliteTarget
from tests.support.fakes import ManualClock
from tests.support.migration_kit import move
from tests.support.program import legato
from tests.support.store_kit import START, key, put
from tests.support.waiting import eventually

if TYPE_CHECKING:  # at run time they are plugins, which nobody may import first
    from tests.support.migration_places import Places
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.migration_places"]

# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["sqlite", "redis"])
async def test_a_target_that_holds_something_is_left_alone(places: Places, place: str) -> None:
    source = await places.filled(places.sqlite("a.db"))
    target = places.sqlite("b.db") if place == "sqlite" else places.redis[0]
    store = await places.open(target)
    await put(store, "e1")
    await places.leave(store)
    with pytest.raises(StoreUnavailable, match=r"is not empty\. .* choose another"):
        await move(source, target)
    assert [item.inbound.event_id for item in await (await places.open(target)).waiting(key(), 9)] == ["e1"]


@pytest.mark.parametrize("place", ["sqlite", "redis"])
async def test_a_store_that_was_only_looked_at_is_empty(places: Places, place: str) -> None:
    source = await places.filled(places.sqlite("a.db"))
    target = places.sqlite("b.db") if place == "sqlite" else places.redis[0]
    store = await places.open(target)
    await store.status()
    await store.aclose()
    assert (await move(source, target)).verified["session"] == 8


async def test_keys_of_another_program_are_left_alone(places: Places, redis_server: RedisServer) -> None:
    source = await places.filled(places.sqlite("a.db"))
    with redis_server.client() as client:
        client.set("theirs", "1")
        with pytest.raises(StoreUnavailable, match="holds keys of another program"):
            await move(source, places.redis[0])
        assert client.keys("*") == ["theirs"]
    (places.folder / "other.db").write_bytes(b"no database at all, but long enough to be taken for one" * 99)
    with pytest.raises(StoreUnavailable, match="is not a Legato store"):
        await move(source, places.sqlite("other.db"))


@pytest.mark.parametrize("place", ["sqlite", "redis"])
async def test_a_store_in_use_is_not_moved(places: Places, place: str) -> None:
    source = await places.filled(places.sqlite("a.db") if place == "sqlite" else places.redis[0])
    running = await places.open(source)
    who = r"in use by process \d+\. Stop it" if place == "sqlite" else r"A gateway uses .* on 127\.0\.0\.1\. Stop every"
    with pytest.raises(StoreLocked, match=who):
        await move(source, places.redis[1])
    await running.aclose()
    assert (await move(source, places.redis[1])).verified["session"] == 8


async def test_a_target_in_use_is_not_filled(places: Places) -> None:
    source = await places.filled(places.sqlite("a.db"))
    running = await places.open(places.redis[0])
    with pytest.raises(StoreLocked, match="A gateway uses"):
        await move(source, places.redis[0])
    await put(running, "e1")  # which goes on undisturbed
    await running.aclose()
    assert len(await (await places.open(places.redis[0])).waiting(key(), 9)) == 1


@pytest.mark.parametrize("place", ["sqlite", "redis"])
async def test_no_gateway_opens_a_store_that_is_moved(places: Places, place: str) -> None:
    url = await places.filled(places.sqlite("a.db") if place == "sqlite" else places.redis[0])
    source = source_at(url, SystemClock())
    await source.open()
    with pytest.raises(StoreLocked if place == "sqlite" else StoreUnavailable, match=r"Another Legato|Wait until"):
        await places.open(url)
    with pytest.raises(StoreLocked, match=r"in use by process|Another migration works on"):
        await move(url, places.sqlite("b.db"))
    await source.aclose()
    await (await places.open(url)).aclose()


async def test_a_gateway_that_joins_while_a_migration_begins_withdraws(
    places: Places, redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway was admitted just before the lease was taken, and so did not see it."""
    lease = f"{prefix(partition_of_name(LEASE))}lease:{LEASE}"
    joined = RedisBackend._beat_everywhere

    async def first_beats(backend: RedisBackend, *args: Any, **how: Any) -> None:
        await joined(backend, *args, **how)
        with redis_server.client() as client:
            assert client.keys("*:member:*")
            client.set(lease, "a migration")

    monkeypatch.setattr(RedisBackend, "_beat_everywhere", first_beats)
    with pytest.raises(StoreUnavailable, match="`legato migrate` works on"):
        await places.open(places.redis[0])
    with redis_server.client() as client:
        assert client.keys("*:member:*") == []


async def test_one_store_is_not_moved_to_itself(places: Places, redis_server: RedisServer) -> None:
    file = await places.filled(places.sqlite("a.db"))
    with pytest.raises(StoreError, match="are the same store"):
        await move(file, f"sqlite:///{places.folder}/../{places.folder.name}/a.db")
    database = await places.filled(places.redis[0])
    with pytest.raises(StoreError, match="are the same store"):
        await move(database, f"redis://localhost:{redis_server.port}/0")


async def test_a_migration_that_was_held_up_too_long_does_not_publish(
    places: Places, redis_server: RedisServer
) -> None:
    clock = ManualClock(START)
    source = RedisSource(await places.filled(places.redis[0]), clock=clock)
    await source.open()
    await source.check()
    places.forget_migrations()
    await clock.advance(60)

    async def lost() -> bool:
        try:
            await source.check()
        except StoreUnavailable as error:
            return "held up" in str(error)
        return False

    await eventually(lost)
    await source.aclose()


class Forgetful(SqliteTarget):
    """Loses something on the way."""

    loss: Callable[[Any], Any]

    async def complete(self, last_number: int) -> None:
        await super().complete(last_number)
        await self._in_thread(lambda: self.loss(self._connected))


@pytest.mark.parametrize(
    ("loss", "what"),
    [
        (
            "UPDATE message SET doc = replace(doc, 'a late', 'a Late')",
            "wrote 21 records of the kind 'message', and ",
        ),
        ("DELETE FROM row WHERE key = 'r3'", "wrote 16 records of the kind 'row', and read back 15 "),
        ("UPDATE item SET doc = json_set(doc, '$.attempts', 9) WHERE key = 1", "wrote 25 records of the kind 'item', "),
        ("UPDATE row SET doc = json_set(doc, '$.place', 7)", "wrote 16 records of the kind 'row', and read back 16 "),
        ("DELETE FROM series WHERE name = 's4' AND place = 1", "kind 'message', and read back"),
        ("DELETE FROM session WHERE key = 's4'", "The store is damaged: session s4 is missing"),
    ],
)
async def test_what_is_not_equal_is_named_and_not_published(places: Places, loss: str, what: str) -> None:
    source = await places.filled(places.sqlite("a.db"))
    clock = SystemClock()
    target = Forgetful(places.folder / "b.db")
    target.loss = lambda connection: connection.execute(loss).fetchall()
    with pytest.raises(StoreError, match=what):
        await migrate(source_at(source, clock), target, clock=clock)
    with pytest.raises(StoreUnavailable, match="half of a migration"):
        await places.open(places.sqlite("b.db"))
    assert (await move(source, places.sqlite("b.db"))).verified["message"] == 21


@pytest.mark.parametrize(
    ("gone", "what"),
    [
        ("message", "message .* of session .* is missing"),
        ("content", "has no content"),
        ("session", "session .* is missing"),
    ],
)
async def test_a_damaged_database_is_not_taken_for_a_whole_one(
    places: Places, redis_server: RedisServer, gone: str, what: str
) -> None:
    source = await places.filled(places.redis[0])
    with redis_server.client() as client:
        client.delete(*client.keys(f"{{p??}}:{gone}:*"))
    with pytest.raises(StoreError, match=f"The store is damaged: .*({what})"):
        await move(source, places.sqlite("a.db"))


async def test_a_damaged_file_is_not_taken_for_a_whole_one(places: Places) -> None:
    source = await places.filled(places.sqlite("a.db"))
    with closing(sqlite3.connect(places.folder / "a.db")) as connection, connection:
        connection.execute("DELETE FROM message WHERE key = (SELECT number FROM series LIMIT 1)")
    with pytest.raises(StoreError, match=r"is damaged: message [0-9]+ of session .* is missing\. Restore"):
        await move(source, places.redis[0])


# -- the program --------------------------------------------------------------------------------


async def program(*arguments: str) -> tuple[int, str, str]:
    """`legato migrate`, ended."""
    return await legato(Path(), "migrate", *arguments)


async def test_the_program_says_what_it_did_and_what_to_do_next(places: Places) -> None:
    source = await places.filled(places.sqlite("a.db"))
    status, out, errors = await program(source, places.redis[0])
    assert (status, errors) == (0, "")
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["copied", "verified"]
    assert ["session", "8", "8"] in lines
    assert ["message", "21", "21"] in lines
    assert out.splitlines()[-1].startswith(f"Set store.url to {places.redis[0]} (with its")
    _, out, _ = await program("--json", places.redis[0], places.sqlite("b.db"))
    row = json.loads(out)
    assert {"kind": "item", "copied": 25, "verified": 25} in row["kinds"]


async def test_the_program_fails_in_one_sentence_and_tells_no_password(places: Places) -> None:
    status, out, errors = await program("sqlite:///nowhere/a.db", places.redis[0])
    assert (status, out) == (1, "")
    assert errors == "legato: There is no store at nowhere/a.db. Check the address.\n"
    source = await places.filled(places.sqlite("a.db"))
    wrong = places.redis[0].replace("redis://", "redis://:geheim%21wort@")
    status, _, errors = await program(source, wrong)
    assert (status, len(errors.splitlines())) == (1, 1)
    assert "geheim" not in errors
    status, _, errors = await program(source, "http://:geheim@localhost/0")
    assert status == 2
    assert errors.startswith("legato: TARGET must be sqlite:///FILE")
