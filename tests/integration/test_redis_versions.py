"""Processes of two versions on one Redis store: they share it, or the newer one waits and says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from structlog.testing import capture_logs

from gateway.runtime.errors import StoreOutdated
from gateway.store.redis import RedisStore, admission
from gateway.store.redis.admission import META
from tests.support.store_kit import key, put
from tests.support.waiting import eventually

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_stores"]

Opener = Callable[..., RedisStore]


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, int], None]:
    """Makes the program that of a later version: its format, and the oldest one that it can work beside."""

    def become(form: int, readable_from: int) -> None:
        monkeypatch.setattr(admission, "FORMAT", form)
        monkeypatch.setattr(admission, "READABLE_FROM", readable_from)

    monkeypatch.setattr(admission, "_LOOK_AGAIN", 0.05)
    return become


def facts(server: RedisServer) -> tuple[str, str]:
    with server.client() as client:
        return tuple(client.hmget(META, "format", "readable_from"))


async def test_versions_that_can_read_each_other_share_the_store(
    server: RedisServer, make: Opener, newer: Callable[[int, int], None]
) -> None:
    old = make(server.url)
    await old.open()
    newer(3, 2)
    new = make(server.url)
    await new.open()
    assert facts(server) == ("3", "2")
    await put(old, "e1")
    await put(new, "e2")
    assert [(await each.status()).waiting for each in (old, new)] == [2, 2]
    newer(2, 2)
    await make(server.url).open()
    assert facts(server) == ("3", "2"), "an older one takes nothing back"


async def test_a_version_that_others_cannot_read_waits_for_their_end_and_says_so(
    server: RedisServer, make: Opener, newer: Callable[[int, int], None]
) -> None:
    old = make(server.url)
    await old.open()
    newer(3, 3)
    with pytest.raises(StoreOutdated, match="Stop every process of it"):
        await make(server.url, waits=False).open()
    assert facts(server) == ("2", "2"), "looking changes nothing"
    told: list[str] = []
    waiting = [make(server.url, told=told.append) for _ in range(2)]
    with capture_logs() as logs:
        opening = [asyncio.get_running_loop().create_task(each.open()) for each in waiting]
        await eventually(lambda: len(told) == 2)
        assert [each["event"] for each in logs] == ["store_waits_for_earlier_version"] * 2
    assert "use the database at 127.0.0.1" in told[0]
    assert facts(server) == ("2", "3"), "no other of the earlier version is let in"
    await put(old, "e1")  # which works to its end
    assert not any(each.done() for each in opening)
    await old.aclose()
    await asyncio.gather(*opening)
    assert facts(server) == ("3", "3")
    assert [item.inbound.event_id for item in await waiting[0].waiting(key(), 9)] == ["e1"]


async def test_one_that_gives_up_waiting_leaves_the_earlier_version_its_store(
    server: RedisServer, make: Opener, newer: Callable[[int, int], None]
) -> None:
    old = make(server.url)
    await old.open()
    newer(3, 3)
    told: list[str] = []
    opening = asyncio.get_running_loop().create_task(make(server.url, told=told.append).open())
    await eventually(lambda: bool(told))
    opening.cancel()
    with suppress(asyncio.CancelledError):
        await opening
    newer(2, 2)
    await make(server.url).open()
    assert facts(server) == ("2", "2")
