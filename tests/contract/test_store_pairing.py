"""The contract of the guest book: one for all, replaced only by who knows what it was."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from gateway.domain.pairing import Asking, Guest, GuestBook
from gateway.store.port import Store
from tests.support.store_kit import START, Bench

pytest_plugins = ["tests.support.stores"]

ASKS = Asking(platform="p", user="1", chat="c", name="Änn \ud83d", code="ABCD", event="e", at=START + 0.1)
GUEST = Guest(platform="p", user="2", chat="c2", name="买", code="EFGH", at=START)


async def test_nobody_was_let_in_at_first(store: Store) -> None:
    assert await store.guest_book() == GuestBook()


async def test_what_was_stored_is_there_after_a_crash(bench: Bench) -> None:
    store = await bench.open()
    first = GuestBook(asking=(ASKS,), guests=(GUEST,), failures=2, failed_at=START + 7, version=1)
    assert await store.set_guest_book(first)
    second = replace(first, asking=(), version=2)
    assert await store.set_guest_book(second)
    assert await store.guest_book() == second
    store = await bench.crash(store)
    assert await store.guest_book() == second


async def test_a_change_of_what_it_no_longer_is_changes_nothing(store: Store) -> None:
    now = GuestBook(guests=(GUEST,), version=1)
    assert await store.set_guest_book(now)
    for version in (1, 3, 4):
        assert not await store.set_guest_book(GuestBook(version=version))
    assert await store.guest_book() == now


async def test_of_many_changes_at_once_one_is_made(store: Store) -> None:
    books = [GuestBook(failures=number, version=1) for number in range(8)]
    made = await asyncio.gather(*(store.set_guest_book(book) for book in books))
    assert sum(made) == 1
    assert await store.guest_book() == books[made.index(True)]
