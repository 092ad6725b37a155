"""Several processes on one Redis database spend from the same caps and send at the same rates.

Each store stands for a process.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from gateway.domain.adapter import Rate
from gateway.runtime.clock import SystemClock
from gateway.store.kinds import BUCKET
from gateway.store.records import Cap, Reservation
from gateway.store.redis import RedisStore
from tests.support.stores import cut_off

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]

DAY = Cap(name="gateway", account="gateway today", limit=10_000, resets_at=4e9)
BOT = "test:1"


@pytest.fixture
async def processes(redis_server: RedisServer) -> AsyncIterator[list[RedisStore]]:
    """Three of them, on an empty database."""
    redis_server.empty()
    stores = [RedisStore(redis_server.url, clock=SystemClock()) for _ in range(3)]
    await asyncio.gather(*(store.open() for store in stores))
    yield stores
    await asyncio.gather(*(store.aclose() for store in stores))


def caps(person: int) -> tuple[Cap, ...]:
    """The gateway's and one person's."""
    return DAY, Cap(name="person", account=f"person {person}", limit=2_500, resets_at=4e9)


async def test_processes_together_never_spend_more_than_a_cap(processes: list[RedisStore]) -> None:
    """Calls begin and end everywhere at once; whoever looks at any time sees no cap overrun."""
    real: list[int] = []

    async def work(number: int, store: RedisStore) -> None:
        for step in range(40):
            person = (number + step) % 5
            call = Reservation(id=f"r{number}-{step}", amount=200 + 10 * (step % 9), caps=caps(person))
            if await store.reserve(call) is None:
                await asyncio.sleep(0)
                cost = call.amount // 2
                await processes[step % 3].settle(call, cost)
                await store.settle(call, call.amount)
                real.append(cost)
            day, own = await store.spent([cap.account for cap in call.caps])
            assert day <= 10_000
            assert own <= 2_500

    await asyncio.gather(*(work(number, store) for number, store in enumerate(processes * 4)))
    people = [caps(person)[1].account for person in range(5)]
    day, *own = await processes[0].spent([DAY.account, *people])
    assert day == sum(own) == sum(real)
    assert day > 8_000


async def test_what_a_dead_process_had_reserved_stays_spent_for_the_others(processes: list[RedisStore]) -> None:
    dying, living, _ = processes
    lost = Reservation(id="lost", amount=2_400, caps=caps(1))
    assert await dying.reserve(lost) is None
    await cut_off(dying)
    reached = await living.reserve(Reservation(id="next", amount=101, caps=caps(1)))
    assert reached is not None
    assert (reached.cap.name, reached.spent) == ("person", 2_400)
    assert await living.spent([DAY.account]) == [2_400]


async def test_processes_together_keep_every_rate(processes: list[RedisStore], redis_server: RedisServer) -> None:
    everybody = Rate(bucket="all", most=5, seconds=30.0)

    async def send(number: int, store: RedisStore) -> None:
        for step in range(12):
            chat = Rate(bucket=f"chat {step % 4}", most=1, seconds=20.0)
            await store.take(BOT, f"t{number}-{step}", [chat, everybody])

    await asyncio.gather(*(send(number, store) for number, store in enumerate(processes)))
    with redis_server.client() as client:
        documents = [client.get(name).partition(" ")[2] for name in client.keys("*:bucket:*")]
    buckets = [BUCKET.record(document).taken for document in documents]
    (moments,) = [taken for taken in buckets if len(taken) == 36]
    assert min(last - first for first, last in zip(moments, moments[5:], strict=False)) >= 29.999
    chats = [taken for taken in buckets if taken is not moments]
    for taken in chats:
        assert len(taken) == 9
        assert min(last - first for first, last in pairwise(taken)) >= 19.999
    assert len(chats) == 4


async def test_another_process_goes_on_with_a_ticket_and_honours_a_silence(processes: list[RedisStore]) -> None:
    one, two, three = processes
    limits = [Rate(bucket="all", most=1, seconds=3_600.0)]
    assert await one.take(BOT, "t1", limits) == 0.0
    mine = await one.take(BOT, "t2", limits)
    theirs = await two.take(BOT, "t2", limits)
    assert 3_000 < theirs < mine + 1.0 < 3_602  # each process reads the server's clock, some milliseconds apart
    await two.hold_off(BOT, "all", 7_200.0)
    assert await three.take(BOT, "t2", limits) > 7_000


async def test_a_ticket_whose_moment_has_come_is_used_up(processes: list[RedisStore]) -> None:
    one, two, _ = processes
    limits = [Rate(bucket="all", most=1, seconds=0.05)]
    assert await one.take(BOT, "t1", limits) == 0.0
    clock = SystemClock()
    while wait := await one.take(BOT, "t2", limits):
        await clock.sleep(wait)
    assert await two.take(BOT, "t3", [Rate(bucket="all", most=1, seconds=3_600.0)]) > 0.0
