"""Items that were running at several crashes: one of them may be the cause, so they are tried alone."""

from __future__ import annotations

import pytest

from gateway.store.base import Store
from tests.contract.store_kit import Bench, finish, nothing_ready, put

pytest_plugins = ["tests.contract.stores"]

CRASHES = 3


@pytest.fixture
async def suspects(bench: Bench) -> Store:
    """A store in which two chats' items were claimed at each of three crashes."""
    store = await bench.open()
    await put(store, "e1", chat="1")
    await put(store, "e2", chat="2")
    for _ in range(CRASHES):
        assert {(await store.claim_next("w")).item.inbound.event_id for _ in "12"} == {"e1", "e2"}
        store = await bench.crash(store)
    return store


async def test_they_are_claimed_one_at_a_time_in_their_order(suspects: Store) -> None:
    first = await suspects.claim_next("w")
    assert (first.item.inbound.event_id, first.item.attempts) == ("e1", CRASHES + 1)
    assert await nothing_ready(suspects)
    await finish(suspects, first)
    second = await suspects.claim_next("w")
    assert (second.item.inbound.event_id, second.item.attempts) == ("e2", CRASHES + 1)


async def test_only_the_one_that_was_tried_loses_an_attempt_at_the_next_crash(bench: Bench, suspects: Store) -> None:
    await suspects.claim_next("w")
    store = await bench.crash(suspects)
    first = await store.claim_next("w")
    await finish(store, first)
    second = await store.claim_next("w")
    assert (first.item.attempts, second.item.attempts) == (CRASHES + 2, CRASHES + 1)


async def test_other_messages_do_not_wait_for_them(suspects: Store) -> None:
    await suspects.claim_next("w")
    await put(suspects, "e3", chat="3")
    assert (await suspects.claim_next("w")).item.inbound.event_id == "e3"


async def test_one_that_is_given_back_lets_the_next_go_first(suspects: Store) -> None:
    first = await suspects.claim_next("w")
    await suspects.release(first.lease)
    second = await suspects.claim_next("w")
    assert second.item.inbound.event_id == "e2"
    assert await nothing_ready(suspects)
    await finish(suspects, second)
    assert (await suspects.claim_next("w")).item.inbound.event_id == "e1"
