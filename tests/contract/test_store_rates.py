"""The contract of rates: moments that are given away keep every limit. Its limits are hours long, so
that it holds on a shared store too, where the server's clock decides."""

from __future__ import annotations

import asyncio

import pytest

from gateway.domain.adapter import Rate
from gateway.store.port import Store
from tests.support.store_kit import Bench

pytest_plugins = ["tests.support.stores"]

HOUR = 3_600.0
BOT = "test:1"


def rate(bucket: str, most: int, hours: float = 1) -> Rate:
    """At most so many in so many hours."""
    return Rate(bucket=bucket, most=most, seconds=hours * HOUR)


def hours(seconds: float) -> float:
    """Rounded: the test itself takes time."""
    return round(seconds / HOUR, 1)


async def test_a_burst_goes_at_once_and_the_rest_waits_its_turn(store: Store) -> None:
    limits = [rate("all", 3)]
    waits = [await store.take(BOT, f"t{number}", limits) for number in range(8)]
    assert waits[:3] == [0.0] * 3
    assert list(map(hours, waits[3:])) == [1, 1, 1, 2, 2]


async def test_a_ticket_keeps_its_moment_until_it_has_come(store: Store) -> None:
    limits = [rate("all", 1)]
    assert await store.take(BOT, "t1", limits) == 0.0
    assert [hours(await store.take(BOT, each, limits)) for each in ("t2", "t3", "t2", "t3")] == [1, 2, 1, 2]
    # A ticket that was used up is a new one.
    assert hours(await store.take(BOT, "t1", limits)) == 3


async def test_all_limits_are_kept_and_a_slow_chat_holds_up_no_other(store: Store) -> None:
    everybody = rate("all", 2)
    slow = [rate("chat 1", 1, 24), everybody]
    assert [hours(await store.take(BOT, f"slow {n}", slow)) for n in range(3)] == [0, 24, 48]
    others = [hours(await store.take(BOT, f"chat {n}", [rate(f"chat {n}", 1), everybody])) for n in range(2, 6)]
    assert others == [0, 1, 1, 2]


async def test_buckets_of_other_accounts_and_other_names_are_apart(store: Store) -> None:
    assert await store.take(BOT, "t1", [rate("all", 1)]) == 0.0
    assert await store.take("test:2", "t2", [rate("all", 1)]) == 0.0
    assert await store.take(BOT, "t3", [rate("other", 1)]) == 0.0
    assert await store.take(BOT, "t4", []) == 0.0


async def test_who_asks_at_the_same_time_gets_moments_apart(store: Store) -> None:
    limits = [rate("all", 4)]
    waits = await asyncio.gather(*(store.take(BOT, f"t{number}", limits) for number in range(20)))
    assert sorted(map(hours, waits)) == sorted([0, 1, 2, 3, 4] * 4)


async def test_a_silence_moves_what_is_asked_for_and_what_was_given_away(store: Store) -> None:
    limits = [rate("chat", 1), rate("all", 9)]
    assert await store.take(BOT, "t1", limits) == 0.0
    assert hours(await store.take(BOT, "t2", limits)) == 1
    await store.hold_off(BOT, "chat", 5 * HOUR)
    assert hours(await store.take(BOT, "t2", limits)) == 5
    assert hours(await store.take(BOT, "t3", limits)) == 6
    assert await store.take(BOT, "t4", [rate("other chat", 1), rate("all", 9)]) == 0.0
    await store.hold_off(BOT, "all", 7 * HOUR)
    await store.hold_off(BOT, "all", 2 * HOUR)
    assert hours(await store.take(BOT, "t5", [rate("other chat", 1), rate("all", 9)])) == 7


@pytest.mark.parametrize("most", [1, 2, 5])
async def test_a_shared_limit_stays_exact_whatever_else_limits(store: Store, most: int) -> None:
    """No hour holds more than it may, among those who wait for a chat of their own, too."""
    waits = []
    for number in range(30):
        limits = [rate(f"chat {number % 3}", 1, 0.7), rate("all", most)]
        waits.append(await store.take(BOT, f"t{number}", limits))
    waits.sort()
    tight = [(first, last) for first, last in zip(waits, waits[most:], strict=False) if last - first < HOUR - 60]
    assert tight == []


async def test_silence_is_kept_by_whoever_starts_meanwhile(bench: Bench) -> None:
    store = await bench.open()
    assert await store.resting(BOT, "chat 1") == 0.0
    await store.hold_off(BOT, "chat 1", 2 * HOUR)
    await store.hold_off(BOT, "chat 1", HOUR)  # not shorter by this
    bench.clock.jump(-5 * HOUR)
    store = await bench.crash(store)
    assert hours(await store.resting(BOT, "chat 1")) == 2
    assert hours(await store.take(BOT, "t1", [rate("chat 1", 9), rate("all", 9)])) == 2
    assert await store.resting(BOT, "chat 2") == 0.0
