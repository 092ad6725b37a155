"""The contract of memory: facts belong to a scope, and a change is whole, of a version that was seen, and durable."""

from __future__ import annotations

import asyncio
from typing import Any

from gateway.domain.chat import SessionKey
from gateway.domain.memory import Fact, Memory, MemoryChange
from gateway.runtime.structs import replace
from gateway.store.port import Store
from tests.support.store_kit import START, Bench, exchange, in_session, key, step

pytest_plugins = ["tests.support.stores"]

ANNA = SessionKey(platform="test", chat="g", user="anna")
BEN = SessionKey(platform="test", chat="g", user="ben/ö")


def fact(number: int, scope: SessionKey = ANNA, **changes: Any) -> Fact:
    facts: dict[str, Any] = {
        "scope": scope,
        "id": f"f{number}",
        "about": "person",
        "text": f"likes {number}",
        "message_id": f"{number}p01",
        "session_id": "s1",
        "said_by": scope.user or "u1",
        "said_at": START + number,
        "made_at": START + number + 0.5,
    }
    return Fact(**{**facts, **changes})


async def keep(store: Store, *facts: Fact, gone: tuple[str, ...] = (), scope: SessionKey = ANNA) -> None:
    version = (await store.memory(scope)).version
    assert await store.change_memory(MemoryChange(scope=scope, version=version, kept=facts, gone=gone))


async def test_facts_come_back_whole_oldest_first_and_after_a_crash(bench: Bench) -> None:
    store = await bench.open()
    new, old = fact(2, uses=3, used_at=START + 9.25, said_by_name="Änna", origin="the page ö.example"), fact(1)
    old = replace(old, superseded_by="f2", superseded_at=START + 4)
    bare = fact(3, text="", forgotten=True, about="notes")
    await keep(store, new, bare, old)
    assert await store.memory(ANNA) == Memory(facts=(old, new, bare), version=1)
    store = await bench.crash(store)
    assert await store.memory(ANNA) == Memory(facts=(old, new, bare), version=1)


async def test_a_change_writes_and_removes_in_one_step(store: Store) -> None:
    await keep(store, fact(1), fact(2), fact(3))
    await keep(store, replace(fact(2), text="likes two"), fact(4), gone=("f1", "f9"))
    memory = await store.memory(ANNA)
    assert [each.text for each in memory.facts] == ["likes two", "likes 3", "likes 4"]
    assert memory.version == 2


async def test_numbers_last_and_the_highest_outlives_its_fact(bench: Bench) -> None:
    store = await bench.open()
    bare, numbered = fact(1), replace(fact(2), number=7)
    change = MemoryChange(scope=ANNA, version=0, last_number=7, kept=(bare, numbered))
    assert await store.change_memory(change)
    assert await store.change_memory(MemoryChange(scope=ANNA, version=1, last_number=7, gone=("f2",)))
    store = await bench.crash(store)
    memory = await store.memory(ANNA)
    assert memory == Memory(facts=(bare,), version=2, last_number=7)
    assert memory.numbered() == Memory(facts=(replace(bare, number=8),), version=2, last_number=8)


async def test_a_change_of_an_old_version_changes_nothing(store: Store) -> None:
    await keep(store, fact(1))
    late = MemoryChange(scope=ANNA, version=0, kept=(fact(2),), gone=("f1",))
    assert not await store.change_memory(late)
    assert await store.memory(ANNA) == Memory(facts=(fact(1),), version=1)


async def test_of_two_changes_at_once_one_is_refused(store: Store) -> None:
    changes = [MemoryChange(scope=ANNA, version=0, kept=(fact(number),)) for number in (1, 2)]
    done = await asyncio.gather(*(store.change_memory(each) for each in changes))
    assert sorted(done) == [False, True]
    assert len((await store.memory(ANNA)).facts) == 1


async def test_scopes_never_see_each_other(store: Store) -> None:
    others = [BEN, key("g"), SessionKey(platform="test", chat="g", thread="t"), replace(ANNA, platform="other")]
    for number, scope in enumerate([ANNA, *others]):
        await keep(store, fact(number, scope, id="same"), scope=scope)
    for number, scope in enumerate([ANNA, *others]):
        assert [each.text for each in (await store.memory(scope)).facts] == [f"likes {number}"]
    await keep(store, gone=("same",))
    assert (await store.memory(BEN)).facts


async def test_any_text_comes_back_as_utf_8_can_hold_it(store: Store) -> None:
    odd = ["\x00", "two\nlines\t\r\n", "\U0001f600 \ud83d", "永远用中文回答", '{"facts": []}', "'; --", "{p03}"]
    await keep(store, *(fact(number, text=text) for number, text in enumerate(odd)))
    held = [each.text for each in (await store.memory(ANNA)).facts]
    assert held == [text.replace("\ud83d", "?") for text in odd]


async def test_a_session_remembers_how_much_memory_was_given(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store, *exchange(1))
    assert session.flushed_messages == 0
    await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(2), flushed_messages=2))
    await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(3)))
    assert (await store.session(session.id)).flushed_messages == 2
    now = await store.update_session(claim.lease, session.ref, flushed_messages=3)
    assert now.epoch == session.epoch
    await store.end_session(claim.lease, now.ref, "reset", START, None)
    await store.note_flushed(now, 6)
    await store.note_flushed(now, 5)
    store = await bench.crash(store)
    assert (await store.session(session.id)).flushed_messages == 6


async def test_a_late_title_takes_nobodys_place(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store, *exchange(1))
    await store.note_title(replace(session, rewritten=1), "of what was forgotten")
    assert (await store.session(session.id)).title is None
    await store.note_title(session, "Late \ud83d")
    await store.note_title(session, "Later")
    assert (await store.session(session.id)).title == "Late ?"
    await store.update_session(claim.lease, session.ref, title="mine")  # no epoch has passed
    await store.note_title(session, "Latest")
    store = await bench.crash(store)
    assert (await store.session(session.id)).title == "mine"
    await store.note_title(replace(session, id="s_none"), "nobody's")
