"""The contract of temporary chats: only their own chat finds their words, and once they end all of it can go."""

from __future__ import annotations

from gateway.domain.chat import KeptFile
from gateway.domain.message import assistant, note_of, user
from gateway.domain.session import Session
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Claim, Erasure, Opening
from tests.support.remains import remains
from tests.support.store_kit import (
    START,
    Bench,
    claimed,
    contents,
    exchange,
    in_session,
    key,
    new_session,
    outbound,
    transcript,
)

pytest_plugins = ["tests.support.stores"]

WORD = "quizzaciously"


async def begun(store: Store) -> tuple[Claim, Session]:
    """An ordinary session that has ended, and behind it a temporary one that holds the word."""
    claim, first = await in_session(store, *exchange(1))
    chat = new_session("s2", temporary=True, started_at=START + 10, expires_at=START + 100)
    said = (user(f"question {WORD}", tokens=5), assistant(f"{WORD}, answer 1", tokens=6))
    opened = await store.end_session(
        claim.lease, first.ref, "reset", START + 10, Opening(session=chat, transcript=said)
    )
    assert opened is not None
    return claim, opened


async def test_only_its_own_chat_finds_its_words(bench: Bench) -> None:
    store = await bench.open()
    _, session = await begun(store)
    (name, _) = [note_of(each)["id"] for each in await transcript(store, session.id)]
    for hidden, finds in ((None, False), (key(), True)):
        assert bool(await store.search(WORD, key(), 5, hidden=hidden)) is finds
        assert bool((await store.holding([WORD], key(), 5, hidden=hidden))[0]) is finds
        assert bool(await store.around(key(), name, 2, hidden=hidden)) is finds
    for hidden, text in ((None, "answer 1"), (key(), f"{WORD}, answer 1")):
        (found,) = await store.search("answer 1", key(), 1, hidden=hidden)
        assert found.hit.message["content"] == text, "whatever of another chat would come first"


async def test_only_it_goes_once_it_has_ended(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await begun(store)
    await store.keep_file(key(), KeptFile(ref="old", digest="d", name="a", mime="", size=1, at=START), b"1")
    await store.keep_file(
        key(), KeptFile(ref="new", digest="w", name="b", mime="", size=9, at=START + 20), WORD.encode()
    )
    rows = [outbound("o1", text="ordinary"), outbound("o2", text=WORD, created_at=START + 20)]
    await store.emit([replace(each, key=key()) for each in rows])
    assert await store.claim_due_sessions(START + 30, 5) == []
    await store.end_session(claim.lease, session.ref, "reset", START + 30, None)
    store = await bench.crash(store)
    (due,) = await store.claim_due_sessions(START + 30, 5)
    assert (due.id, due.temporary) == ("s2", True), "a crash came before the deletion"
    deed = Erasure(id="d1", key=key(), at=START + 31, over=START + 30, files=("new",))
    claim = await claimed(store, "again")
    for _ in range(2):
        assert await store.erase(claim.lease, deed) == {"sessions": 1, "messages": 2, "files": 1}
    assert [each.id for each in await store.sessions(key(), 9)] == ["s1"]
    assert contents(await transcript(store, "s1")) == ["question 1", "answer 1"]
    assert [each.ref for each in await store.kept_files(key(), 9)] == ["old"]
    assert [each.text for each in await store.outbox(key().address, 9)] == ["ordinary"]
    assert await store.claim_due_sessions(START + 1_000, 5) == []
    assert await remains(bench, WORD, WORD[2:]) == []


async def test_what_is_undone_in_it_waits_for_its_end(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await begun(store)
    said = await transcript(store, session.id)
    version = new_session("s3", temporary=True, parent_id="s2", started_at=START + 20, expires_at=START + 200)
    opened = await store.end_session(
        claim.lease, session.ref, "undone", START + 20, Opening(session=version, transcript=said[:1])
    )
    assert opened is not None
    assert [each.id for each in await store.claim_due_sessions(START + 300, 5)] == ["s3"]
    await store.end_session(claim.lease, opened.ref, "expired", START + 300, None)
    deed = Erasure(id="d1", key=key(), at=START + 301, over=START + 300)
    assert await store.erase(claim.lease, deed) == {"sessions": 2, "messages": 2, "files": 0}


async def test_what_is_kept_is_found_and_ends_as_any_other(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await begun(store)
    await store.keep_temporary(claim.lease, session.ref, START + 500)
    kept = await store.session("s2")
    assert (kept.temporary, kept.expires_at, kept.system_prompt, kept.epoch) == (
        False,
        START + 500,
        "",
        session.epoch + 1,
    )
    assert await store.search(WORD, key(), 5)
    assert not await store.search(WORD, key(), 5, hidden=key())
    await store.end_session(claim.lease, kept.ref, "reset", START + 30, None)
    assert await store.claim_due_sessions(START + 1_000, 5) == []
    assert len(await store.sessions(key(), 9)) == 2
