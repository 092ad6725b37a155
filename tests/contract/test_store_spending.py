"""The contract of spending: what is reserved never goes beyond a cap, and what is settled counts once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.store.port import Store
from gateway.store.records import Cap, CapReached, Reservation
from tests.support.store_kit import START, Bench

pytest_plugins = ["tests.support.stores"]

DAY = 86_400.0
GATEWAY = Cap(name="gateway", account="gateway 2023-11-14", limit=1_000, resets_at=START + DAY)
PERSON = Cap(name="person", account="person test:7 2023-11-14", limit=600, resets_at=START + DAY)
SESSION = Cap(name="session", account="session s1", limit=300)
ALL = (GATEWAY, PERSON, SESSION)


def call(number: str, amount: int, *caps: Cap) -> Reservation:
    """A reservation under these caps (none given: all three)."""
    return Reservation(id=number, amount=amount, caps=caps or ALL)


async def spent(store: Store) -> list[int]:
    """Under the gateway's, the person's and the session's cap."""
    return await store.spent([cap.account for cap in ALL])


async def test_a_reservation_counts_under_each_of_its_caps_until_it_is_settled(store: Store) -> None:
    first, second = call("r1", 100), call("r2", 200, GATEWAY)
    assert await store.reserve(first) is None
    assert await store.reserve(second) is None
    assert await spent(store) == [300, 100, 100]
    await store.settle(first, 40)
    assert await spent(store) == [240, 40, 40]
    await store.settle(second, 0)
    assert await spent(store) == [40, 40, 40]


async def test_settling_twice_is_settling_once(store: Store) -> None:
    await store.reserve(call("r1", 100))
    await store.reserve(call("r2", 100))
    for cost in (30, 30, 0, 999):
        await store.settle(call("r1", 100), cost)
    assert await spent(store) == [130, 130, 130]
    await store.settle(call("never reserved", 50), 50)
    assert await spent(store) == [130, 130, 130]


async def test_reserving_twice_is_reserving_once(store: Store) -> None:
    for _ in range(2):
        assert await store.reserve(call("r1", 300)) is None
    assert await spent(store) == [300, 300, 300]


async def test_a_cost_above_what_was_reserved_counts_in_full(store: Store) -> None:
    await store.reserve(call("r1", 100))
    await store.settle(call("r1", 100), 350)
    assert await spent(store) == [350, 350, 350]
    assert await store.reserve(call("r2", 0)) == CapReached(cap=SESSION, spent=350)


@pytest.mark.parametrize("tight", [0, 1, 2])
async def test_the_first_cap_without_room_is_named_and_nothing_is_counted(store: Store, tight: int) -> None:
    filled = ALL[tight]
    await store.reserve(call("r1", filled.limit - 49, filled))
    before = await spent(store)
    assert await store.reserve(call("r2", 50)) == CapReached(cap=filled, spent=filled.limit - 49)
    assert await spent(store) == before
    assert await store.reserve(call("r2", 49)) is None


async def test_of_many_at_once_only_what_fits_is_let_through(store: Store) -> None:
    """Each of the caps is the tight one for some; what was refused leaves nothing behind."""
    sessions = [Cap(name="session", account=f"session {n}", limit=120) for n in range(4)]
    calls = [call(f"r{n}", 30 + n % 7, GATEWAY, PERSON, sessions[n % 4]) for n in range(120)]
    answers = await asyncio.gather(*(store.reserve(each) for each in calls))
    let_through = [each for each, answer in zip(calls, answers, strict=True) if answer is None]
    total = sum(each.amount for each in let_through)
    assert 0 < total <= PERSON.limit
    assert await store.spent([GATEWAY.account, PERSON.account]) == [total, total]
    assert sum(await store.spent([cap.account for cap in sessions])) == total
    await asyncio.gather(*(store.settle(each, 1) for each in let_through * 2))
    assert await store.spent([GATEWAY.account]) == [len(let_through)]


async def test_a_new_day_has_an_account_of_its_own(bench: Bench) -> None:
    store = await bench.open()
    assert await store.reserve(call("r1", 1_000, GATEWAY)) is None
    assert await store.reserve(call("r2", 1, GATEWAY)) is not None
    bench.clock.jump(DAY)
    tomorrow = Cap(name="gateway", account="gateway 2023-11-15", limit=1_000, resets_at=START + 2 * DAY)
    assert await store.reserve(call("r3", 900, tomorrow)) is None
    assert await store.spent([GATEWAY.account, tomorrow.account]) == [1_000, 900]


async def test_what_a_crash_leaves_reserved_counts_as_spent(bench: Bench) -> None:
    store = await bench.open()
    done, lost = call("r1", 100), call("r2", 150)
    await store.reserve(done)
    await store.settle(done, 10)
    await store.reserve(lost)
    store = await bench.crash(store)
    assert await spent(store) == [160, 160, 160]
    assert await store.reserve(call("r3", 141)) == CapReached(cap=SESSION, spent=160)
    assert await store.reserve(call("r4", 140)) is None
    await store.settle(call("r4", 140), 5)
    assert await spent(store) == [165, 165, 165]


async def test_a_caller_who_is_gone_leaves_nothing_reserved(bench: Bench) -> None:
    store = await bench.open()
    for number in range(20):
        asked = call(f"r{number}", 10)
        task: asyncio.Task[Any] = asyncio.create_task(store.reserve(asked))
        for _ in range(number % 5):
            await asyncio.sleep(0)
        if not task.cancel():  # a busy machine may have answered by now
            await store.settle(asked, 0)
        await asyncio.gather(task, return_exceptions=True)
    late = call("late", 10)
    for _ in range(100):  # what was given back is seen by whoever reserves next, or soon after
        await store.reserve(late)
        await store.settle(late, 0)
    assert await spent(store) == [0, 0, 0]


async def test_names_are_taken_as_they_come(store: Store) -> None:
    odd = Cap(name="person", account="person 名前/\ud83d:'\" {p03}", limit=10)
    assert await store.reserve(call("\ud83d", 10, odd)) is None
    assert await store.spent([odd.account]) == [10]
    await store.settle(call("\ud83d", 10, odd), 3)
    assert await store.spent([odd.account]) == [3]


async def test_sums_are_whole_numbers_of_any_size(store: Store) -> None:
    rich = Cap(name="gateway", account="gateway", limit=10**15)
    assert await store.reserve(call("r1", 10**15 - 1, rich)) is None
    assert await store.reserve(call("r2", 2, rich)) == CapReached(cap=rich, spent=10**15 - 1)
    assert await store.reserve(call("r2", 1, rich)) is None
    await store.settle(call("r1", 10**15 - 1, rich), 10**15 - 3)
    assert await store.spent([rich.account]) == [10**15 - 2]
