"""Items that were running at several crashes: one of them may be the cause, so they are tried alone."""

from __future__ import annotations

import asyncio

import pytest

from gateway.store.port import Store
from gateway.store.records import ATTEMPT_PAUSES, MOST_ATTEMPTS, Claim, Opening
from tests.support.store_kit import Bench, exchange, finish, in_session, new_session, nothing_ready, put, step

pytest_plugins = ["tests.support.stores"]

CRASHES = 2
BOTH = {"e1", "e2"}


async def claim(store: Store) -> Claim:
    """The next claim; a store that never makes it fails instead of waiting for ever."""
    async with asyncio.timeout(60):
        return await store.claim_next("w")


@pytest.fixture
async def suspects(bench: Bench) -> Store:
    """A store in which two chats' items were claimed at each of two crashes."""
    store = await bench.open()
    await put(store, "e1", chat="1")
    await put(store, "e2", chat="2")
    for _ in range(CRASHES):
        assert {(await claim(store)).item.inbound.event_id for _ in BOTH} == BOTH
        store = await bench.crash(store)
    await bench.clock.advance(ATTEMPT_PAUSES[CRASHES] + 1.0)
    return store


async def test_they_are_claimed_one_at_a_time(suspects: Store) -> None:
    first = await claim(suspects)
    assert await nothing_ready(suspects)
    await finish(suspects, first)
    second = await claim(suspects)
    assert {first.item.inbound.event_id, second.item.inbound.event_id} == BOTH
    assert (first.item.attempts, second.item.attempts) == (CRASHES + 1, CRASHES + 1)


async def test_only_the_one_that_was_tried_loses_an_attempt_at_the_next_crash(bench: Bench, suspects: Store) -> None:
    tried = await claim(suspects)
    store = await bench.crash(suspects)
    await bench.clock.advance(ATTEMPT_PAUSES[CRASHES + 1] + 1.0)
    first = await claim(store)
    await finish(store, first)
    second = await claim(store)
    attempts = {each.item.inbound.event_id: each.item.attempts for each in (first, second)}
    assert attempts.pop(tried.item.inbound.event_id) == CRASHES + 2
    assert list(attempts.values()) == [CRASHES + 1]


async def test_other_messages_do_not_wait_for_them(suspects: Store) -> None:
    await claim(suspects)
    await put(suspects, "e3", chat="3")
    assert (await claim(suspects)).item.inbound.event_id == "e3"


async def test_when_one_is_given_back_one_of_them_is_tried(suspects: Store) -> None:
    await suspects.release((await claim(suspects)).lease)
    first = await claim(suspects)
    assert await nothing_ready(suspects)
    await finish(suspects, first)
    second = await claim(suspects)
    assert {first.item.inbound.event_id, second.item.inbound.event_id} == BOTH


async def test_each_attempt_waits_longer_after_a_start_while_others_go_on(bench: Bench) -> None:
    store = await bench.open()
    await put(store, "e1", chat="1")
    for attempts in range(1, MOST_ATTEMPTS + 1):
        pause = ATTEMPT_PAUSES[attempts - 1]
        if pause:
            await bench.clock.advance(pause - 1.0)
            assert await nothing_ready(store)
            await put(store, f"other {attempts}", chat="2")
            await finish(store, await claim(store))
            await bench.clock.advance(4.0)  # a beat comes in between
        found = await claim(store)
        assert (found.item.inbound.event_id, found.item.attempts) == ("e1", attempts)
        store = await bench.crash(store)
    assert (await claim(store)).item.attempts == MOST_ATTEMPTS + 1  # to be buried, for which nothing has to be waited


async def test_a_process_that_dies_of_itself_uses_up_two_attempts_and_no_more(bench: Bench) -> None:
    store = await bench.open()
    await put(store, "e1")
    for _ in range(2):
        await claim(store)
        store = await bench.crash(store)
    for _ in range(10):
        await bench.clock.advance(3.0)
        assert await nothing_ready(store)
        store = await bench.crash(store)
    await bench.clock.advance(8.0)
    assert (await claim(store)).item.attempts == 3


@pytest.mark.parametrize("lives", [[1.0] * 12, [1.0, 3.0, 2.2, 1.3, 2.8, 1.7] * 2], ids=["dies after 1 s", "is killed"])
async def test_a_storm_of_crashes_makes_a_dead_letter_of_nothing(bench: Bench, lives: list[float]) -> None:
    """Each message in hand at five crashes was blamed: 10 to 12 of 60 messages. `lives`: seconds of each process."""
    waiting = {f"e{number}" for number in range(12)}
    store = await bench.open()
    for event in sorted(waiting):
        await put(store, event, chat=event)

    async def answered(found: Claim) -> None:
        assert found.item.attempts <= MOST_ATTEMPTS, "it would be buried"
        await finish(store, found)
        waiting.discard(found.item.inbound.event_id)

    for seconds in lives:
        workers = [asyncio.create_task(store.claim_next("w")) for _ in range(4)]
        await bench.clock.advance(seconds)
        taken = [each.result() for each in workers if each.done()]
        for each in workers:
            each.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        if seconds > 2.0 and taken:  # the rest is cut short
            await answered(taken[0])
        store = await bench.crash(store)
    assert waiting
    await bench.clock.advance(max(ATTEMPT_PAUSES) + 1.0)
    for _ in range(len(waiting)):
        await answered(await claim(store))
    assert not waiting


async def test_a_recorded_step_begins_the_count_anew(bench: Bench) -> None:
    store = await bench.open()
    found, session = await in_session(store)
    for _ in range(2):
        store = await bench.crash(store)
        await bench.clock.advance(8.0)
        found = await claim(store)
    assert found.item.attempts == 3
    await store.record_step(found.lease, session.ref, found.item, step(*exchange(1)))
    store = await bench.crash(store)
    assert (await claim(store)).item.attempts == 2


async def test_one_that_has_stored_a_step_lets_the_next_be_tried(suspects: Store) -> None:
    """It may wait for the other one: a turn waits for its helper."""
    first = await claim(suspects)
    chat = first.item.key.chat
    session = await suspects.open_session(first.lease, Opening(session=new_session(chat, chat)))
    await suspects.record_step(first.lease, session.ref, first.item, step(*exchange(1)))
    second = await claim(suspects)
    assert {first.item.inbound.event_id, second.item.inbound.event_id} == BOTH
    await finish(suspects, first)
    await finish(suspects, second)
    assert await nothing_ready(suspects)
