"""The contract of the guest book: one of every store, of which only the newest version is replaced."""

from __future__ import annotations

import asyncio

from gateway.domain.pairing import Guest, GuestBook, PairingRequest
from gateway.people.pairing import guest_book, set_guest_book
from gateway.runtime.structs import replace
from gateway.store.port import Store
from tests.support.store_kit import START, Bench

pytest_plugins = ["tests.support.stores"]

ASKS = PairingRequest(platform="p", user="1", chat="c", name="Änn \ud83d", code="ABCD", event="e", at=START + 0.1)
GUEST = Guest(platform="p", user="2", chat="c2", name="买", code="EFGH", at=START)


async def test_what_was_stored_is_there_after_a_crash(bench: Bench) -> None:
    store = await bench.open()
    assert await guest_book(store) == GuestBook()
    first = GuestBook(asking=(ASKS,), guests=(GUEST,), failures=2, failed_at=START + 7, version=1)
    assert await set_guest_book(store, first)
    assert await guest_book(store) == first
    second = replace(first, asking=(), version=2)
    assert await set_guest_book(store, second)
    store = await bench.crash(store)
    assert await guest_book(store) == second


async def test_a_change_of_what_it_no_longer_is_changes_nothing(store: Store) -> None:
    now = GuestBook(guests=(GUEST,), version=1)
    assert await set_guest_book(store, now)
    for version in (1, 3, 4):
        assert not await set_guest_book(store, GuestBook(version=version))
    assert await guest_book(store) == now


async def test_of_many_changes_at_once_one_is_made(store: Store) -> None:
    books = [GuestBook(failures=number, version=1) for number in range(8)]
    made = await asyncio.gather(*(set_guest_book(store, book) for book in books))
    assert sum(made) == 1
    assert await guest_book(store) == books[made.index(True)]
