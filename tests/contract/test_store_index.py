"""The contract of an upgrade's search index: entries of another version are made anew."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from gateway.domain.message import assistant, note_of, user
from gateway.store.port import Store
from gateway.store.records import Forgetting, Rewriting
from gateway.store.shared import searchable
from tests.support.remains import in_keys, remains
from tests.support.store_kit import START, Bench, contents, in_session, key, transcript
from tests.support.stores import WITH_AN_INDEX, RedisBench
from tests.support.waiting import eventually

pytest_plugins = ["tests.support.stores"]

pytestmark = pytest.mark.parametrize("bench", WITH_AN_INDEX, indirect=True)

WORD = "quizzaciously"


@pytest.fixture
def earlier(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """An earlier version of Legato, which has other owners in its index, until it is undone."""
    with monkeypatch.context() as patch:
        patch.setattr(searchable, "_MADE", b"words")
        patch.setattr(searchable, "MADE", 1)
        yield patch


async def _filled(bench: Bench, earlier: pytest.MonkeyPatch, *chats: str) -> Store:
    """The store of an earlier version, opened by this one."""
    store = await bench.open()
    for chat in chats or ("1", "2"):
        said = [(user(f"{number}: the {WORD} of Ann"), assistant(f"noted, {number}")) for number in range(10)]
        await in_session(store, *(each for pair in said for each in pair), chat=chat, session_id=f"s{chat}")
    assert len(await _found(store)) == 10
    earlier.undo()
    return await bench.crash(store)


async def _found(store: Store) -> list[str]:
    passages = await store.search(WORD, key(), 50)
    return sorted({each for some in passages for each in contents([one.message for one in some.turns]) if WORD in each})


async def test_an_upgrade_makes_the_entries_anew_by_itself(bench: Bench, earlier: pytest.MonkeyPatch) -> None:
    with capture_logs() as logs:
        store = await _filled(bench, earlier)
        await _renewed(bench, store)
        while not [line for line in logs if line["event"] == "search_index_renewed"]:
            await bench.clock.advance(1)
            await store.status()
    assert len(await _found(store)) == 10
    assert len((await store.holding([WORD], key(), 50))[0]) == 10
    store = await bench.crash(store)
    assert (await store.status()).unindexed == await store.unindexed() == 0
    earlier.setattr(store._backend, "unindexed", None)
    assert await store.unindexed() == 0, "nobody is asked again"
    assert len(await _found(store)) == 10


async def test_nothing_of_an_earlier_index_is_left_of_what_is_forgotten(
    bench: Bench, earlier: pytest.MonkeyPatch
) -> None:
    store = await _filled(bench, earlier, "1")
    await _renewed(bench, store)
    session = await store.session("s1")
    deed = Forgetting(
        id="d1",
        key=key(),
        at=START,
        item=None,
        tip=session.ref,
        removed=tuple(note_of(message)["id"] for message in await transcript(store, "s1")),
        sessions=(Rewriting(session_id="s1", freed=0, title=None, todos=()),),
    )
    await store.forget(None, deed)
    assert await remains(bench, WORD, WORD[:8]) == []
    if isinstance(bench, RedisBench):
        assert [found for server in bench.servers for found in in_keys(server, WORD[:8])] == []


async def test_a_slip_finds_what_was_said_before_slips_were_forgiven(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as before:
        before.setattr(searchable, "_MADE", b"stems")
        before.setattr(searchable, "MADE", 2)
        store = await bench.open()
        await in_session(store, user("My passport is blue."))
        assert await store.search("passport", key(), 5)
        for server in bench.servers if isinstance(bench, RedisBench) else ():
            with server.client() as client:
                for name in client.keys("*:words:*"):  # that version kept no list of words
                    client.delete(name)
    store = await bench.crash(store)
    await _renewed(bench, store)
    assert await store.search("pasport", key(), 5)


async def _renewed(bench: Bench, store: Store) -> None:
    async def is_made() -> bool:
        await bench.clock.advance(1)
        return (await store.status()).unindexed == 0

    await eventually(is_made)
