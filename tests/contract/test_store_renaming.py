"""Chats that their platform calls by another name: everything stays under the first."""

from __future__ import annotations

from itertools import pairwise

from gateway.domain.chat import ChatAddress
from gateway.store.port import Store
from tests.support.store_kit import Bench, arrival

pytest_plugins = ["tests.support.stores"]

# Far enough apart that a store in several places keeps them in different ones.
NAMES = ["-501", "-1001", "-1002", "-1003"]


async def first(store: Store, chat: str, event_id: str = "e", *, platform: str = "test") -> str:
    """Return the first name of a chat."""
    return await store.first_name(platform, chat, event_id)


async def test_a_renamed_chat_is_known_by_its_first_name_after_a_crash_too(bench: Bench) -> None:
    store = await bench.open()
    await store.rename_chat("test", "-501", "-1001")
    for _ in range(2):
        assert [await first(store, name) for name in ("-501", "-1001", "-1002")] == ["-501", "-501", "-1002"]
        assert await store.later_name("test", "-501") == "-1001"
        assert await store.later_name("test", "-1001") is None
        assert await first(store, "-1001", platform="elsewhere") == "-1001"
        store = await bench.crash(store)


async def test_several_names_lead_back_to_the_first_whatever_is_told_twice(store: Store) -> None:
    for _ in range(2):
        for before, after in pairwise(NAMES):
            await store.rename_chat("test", before, after)
    assert {await first(store, name) for name in NAMES} == {"-501"}
    assert [await store.later_name("test", name) for name in NAMES] == ["-1003", "-1002", "-1003", None]


async def test_a_name_that_comes_back_is_no_chat_of_its_own(store: Store) -> None:
    await store.rename_chat("test", "a", "a")
    await store.rename_chat("test", "a", "b")
    await store.rename_chat("test", "b", "a")
    assert [await first(store, name) for name in "ab"] == ["a", "a"]


async def test_what_a_chat_was_called_first_is_never_said_again_otherwise(store: Store) -> None:
    await store.rename_chat("test", "-501", "-1001")
    await store.rename_chat("test", "-502", "-1001")
    assert await first(store, "-1001") == "-501"


async def test_who_has_another_name_is_there(store: Store) -> None:
    here = ChatAddress(platform="test", chat="-501")
    await store.close_chat(here, "the bot is no longer in the group")
    await store.rename_chat("test", "-501", "-1001")
    assert await store.closed(here) is None


async def test_an_event_that_was_accepted_under_the_later_name_is_known_when_it_comes_again(store: Store) -> None:
    await store.accept([arrival("early", "-1001")], cap=9)
    await store.rename_chat("test", "-501", "-1001")
    again = await store.accept([arrival("early", await first(store, "-1001", "early"))], cap=9)
    new = await store.accept([arrival("next", await first(store, "-1001", "next"))], cap=9)
    assert [receipt.status for receipt in (*again, *new)] == ["duplicate", "new"]
    assert await first(store, "-1001", "next") == "-501"


async def test_names_are_told_apart_to_the_letter(store: Store) -> None:
    odd = ["a/chat=b", "a%2Fchat=b", "Ä", "群組", "x y"]
    for name in odd:
        await store.rename_chat("test", name, f"{name} now")
    assert [await first(store, f"{name} now") for name in odd] == odd
    assert [await store.later_name("test", name) for name in odd] == [f"{name} now" for name in odd]
