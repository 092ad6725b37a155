"""Steps of one partition on Redis that wait for the connection go to the server together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

from gateway.domain.chat import SessionKey
from gateway.domain.rule import Pins
from gateway.runtime.errors import SessionConflict
from gateway.store.kinds import PINNED, PinsRecord
from gateway.store.redis import RedisStore
from gateway.store.redis.partitions import partition_of
from gateway.store.space import Space
from tests.support.fakes import ManualClock
from tests.support.model import PATIENCE
from tests.support.store_kit import START, arrival, key

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]

CHATS = [chat for chat in map(str, range(1_000)) if partition_of("test", chat) == 3][:20]


@pytest.fixture
async def store(redis_server: RedisServer) -> AsyncIterator[RedisStore]:
    """A store on an empty database. Its clock stands still, so that it never beats."""
    redis_server.empty()
    store = RedisStore(redis_server.url, clock=ManualClock(START), lease_seconds=600.0, timeout=PATIENCE)
    await store.open()
    yield store
    await store.aclose()


def scripts_run(server: RedisServer) -> int:
    """How many scripts that write the server has run."""
    with server.client() as client:
        stats = client.info("commandstats")
    return sum(stats.get(f"cmdstat_{verb}", {"calls": 0})["calls"] for verb in ("eval", "evalsha"))


def pin(space: Space, of: SessionKey, fails: bool) -> str:
    """A step that may fail when it has put something."""
    space.put(PINNED, PinsRecord(key=of, pins=Pins(set_by=of.chat)))
    if fails:
        raise SessionConflict(of.chat)
    return of.chat


async def test_what_waits_together_is_one_commit(store: RedisStore, redis_server: RedisServer) -> None:
    before = scripts_run(redis_server)
    found = await asyncio.gather(*(store.accept([arrival(f"e{chat}", chat)], cap=9) for chat in CHATS))
    assert [receipt.status for (receipt,) in found] == ["new"] * len(CHATS)
    assert scripts_run(redis_server) - before == 1
    claims = [await store.claim_next("w") for _ in CHATS]
    assert [claim.item.inbound.event_id for claim in claims] == [f"e{chat}" for chat in CHATS]
    fences = [claim.lease.fence for claim in claims]
    assert fences == sorted(set(fences))


@pytest.mark.parametrize("fails", [{0}, {1}, {7, 8}, {19}, set(range(20))])
async def test_of_a_step_that_fails_among_others_nothing_is_kept(store: RedisStore, fails: set[int]) -> None:
    steps = [store.backend.run(pin, key(chat), place in fails) for place, chat in enumerate(CHATS)]
    found = await asyncio.gather(*steps, return_exceptions=True)
    assert [str(each) for each in found] == CHATS
    assert {place for place, each in enumerate(found) if isinstance(each, SessionConflict)} == fails
    kept = [await store.pins(key(chat)) for chat in CHATS]
    assert [pins.set_by for pins in kept] == [None if n in fails else chat for n, chat in enumerate(CHATS)]


async def test_news_that_cannot_be_written_fail_their_step_alone(store: RedisStore) -> None:
    def tells(space: Space, of: SessionKey, word: str) -> str:
        space.put(PINNED, PinsRecord(key=of, pins=Pins(set_by=of.chat)))
        space.tell("odd", word)
        return of.chat

    steps = [store.backend.run(tells, key(chat), "half \ud800" if chat == CHATS[3] else "") for chat in CHATS]
    async with asyncio.timeout(PATIENCE):
        found = await asyncio.gather(*steps, return_exceptions=True)
    assert [isinstance(each, UnicodeEncodeError) for each in found] == [chat == CHATS[3] for chat in CHATS]
    kept = [(await store.pins(key(chat))).set_by for chat in CHATS]
    assert kept == [None if chat == CHATS[3] else chat for chat in CHATS]
