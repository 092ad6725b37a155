"""The contract of notes: small texts of an account, there for every process after a crash."""

from __future__ import annotations

from gateway.store.port import Store
from tests.support.store_kit import Bench

pytest_plugins = ["tests.support.stores"]


async def test_an_account_has_no_notes_at_first(store: Store) -> None:
    assert await store.notes("p:1") == {}


async def test_notes_are_there_after_a_crash_and_belong_to_their_account(bench: Bench) -> None:
    store = await bench.open()
    await store.set_notes("p:1", {"read c": "17", "Änn \ud83d": "买"})
    await store.set_notes("p:2", {"read c": "3"})
    await store.set_notes("p:1", {"read c": "18", "other": "x", "never there": None})
    await store.set_notes("p:1", {"other": None})
    store = await bench.crash(store)
    assert await store.notes("p:1") == {"read c": "18", "Änn ?": "买"}
    assert await store.notes("p:2") == {"read c": "3"}
