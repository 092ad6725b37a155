"""Items that were running at several crashes: one of them may be the cause, so they are tried alone."""

from __future__ import annotations

import asyncio

import pytest

from gateway.store.port import Store
from gateway.store.records import Claim
from tests.support.store_kit import Bench, finish, nothing_ready, put

pytest_plugins = ["tests.support.stores"]

CRASHES = 3
BOTH = {"e1", "e2"}


async def claim(store: Store) -> Claim:
    """The next claim; a store that never makes it fails instead of waiting for ever."""
    async with asyncio.timeout(20):
        return await store.claim_next("w")


@pytest.fixture
async def suspects(bench: Bench) -> Store:
    """A store in which two chats' items were claimed at each of three crashes."""
    store = await bench.open()
    await put(store, "e1", chat="1")
    await put(store, "e2", chat="2")
    for _ in range(CRASHES):
        assert {(await claim(store)).item.inbound.event_id for _ in BOTH} == BOTH
        store = await bench.crash(store)
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
