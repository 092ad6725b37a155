"""Sessions of other programs, and what people look for by an id, on every store."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.domain.message import Message, assistant, note_of, text_of, user
from gateway.domain.session import Session
from gateway.domain.usage import CanonicalUsage, LedgerEntry
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Opening
from tests.support.store_kit import START, Bench, finish, in_session, key, new_session, outbound, put

pytest_plugins = ["tests.support.stores"]


def past(number: str, chat: str = "1", **changes: Any) -> Session:
    """A session that has ended elsewhere."""
    ended = {"ended_at": START - 50, "end_reason": "reset", "hook": "done", "started_at": START - 100}
    return new_session(number, chat, **{**ended, **changes})


def said(*texts: str) -> list[Message]:
    return [(user, assistant)[place % 2](text, tokens=3, at=START - 90 + place) for place, text in enumerate(texts)]


async def listed(store: Store, chat: str | None = "1") -> list[str]:
    return [each.id for each in await store.sessions(None if chat is None else key(chat), 100)]


async def test_it_comes_once_with_its_messages(store: Store, bench: Bench) -> None:
    opening = Opening(session=past("s1", title="Cats 猫"), transcript=said("my cat is called Mitzi", "a nice name"))
    assert await store.import_sessions([opening]) == [True]
    assert await store.import_sessions([opening]) == [False]
    store = await bench.crash(store)
    session = await store.session("s1")
    assert (session.title, session.message_count, session.transcript_tokens) == ("Cats 猫", 2, 6)
    assert (session.ended_at, session.end_reason) == (START - 50, "reset")
    messages = await store.transcript(session)
    assert [(text_of(each), note_of(each)["at"]) for each in messages] == [
        ("my cat is called Mitzi", START - 90), ("a nice name", START - 89),
    ]  # fmt: skip
    (passage,) = await store.search("Mitzi", key(), 5)
    assert (passage.hit.session_id, text_of(passage.hit.message)) == ("s1", "my cat is called Mitzi")


TALKS = {
    "s1": ("my bicycle is red", "a fine colour", "it stands in the cellar"),
    "s2": ("the bicycle was stolen", "I am sorry", "call the police"),
    "s3": ("which bicycle for gravel?", "one with wide tyres", "thank you"),
}


@pytest.mark.parametrize("chat", ["1", None])
async def test_what_surrounds_a_find_is_of_its_own_talk(store: Store, chat: str | None) -> None:
    await store.import_sessions([Opening(session=past(name), transcript=said(*texts)) for name, texts in TALKS.items()])
    shared = await store.transcript(await store.session("s2"))
    grown = Opening(session=past("s4", parent_id="s2"), transcript=[*shared, *said("the bicycle came back", "great")])
    await store.import_sessions([grown])
    texts = [
        (passage.hit.session_id.replace("s4", "s2"), text_of(each.message))
        for passage in await store.search("bicycle", None if chat is None else key(chat), 10)
        for each in passage.turns
    ]
    talks = {**TALKS, "s2": (*TALKS["s2"], "the bicycle came back", "great")}
    assert sorted(texts) == sorted((name, text) for name, said_there in talks.items() for text in said_there)


async def test_a_find_is_read_on_within_its_talk(store: Store) -> None:
    await store.import_sessions([Opening(session=past(name), transcript=said(*texts)) for name, texts in TALKS.items()])
    (passage, *_) = await store.search("stolen", key(), 1)
    around = await store.around(key(), note_of(passage.hit.message)["id"], 9)
    assert tuple(text_of(each.message) for each in around) == TALKS["s2"]


async def test_it_is_nobodys_present_session_and_owes_nothing(store: Store) -> None:
    await store.import_sessions([Opening(session=past("s1"), transcript=said("hello"))])
    assert await store.tip(key()) is None
    assert await store.pending_hooks(10) == []
    assert await store.claim_due_sessions(START * 2, 10) == []
    assert (await store.status()).sessions == 1
    await put(store, "e1")
    claim = await store.claim_next("w")
    opened = await store.open_session(claim.lease, Opening(session=new_session("own")))
    assert (await store.tip(key()), await listed(store)) == (opened, ["own", "s1"])


async def test_lists_have_it_behind_all_others_in_the_order_of_its_coming(store: Store) -> None:
    for chat, name in (("1", "own1"), ("2", "own2")):
        await put(store, f"e{chat}", chat=chat)
        claim = await store.claim_next("w")
        await store.open_session(claim.lease, Opening(session=new_session(name, chat)))
        await finish(store, claim)
    for number in range(3):
        await store.import_sessions([Opening(session=past(f"s{number}"), transcript=said("x"))])
    assert await listed(store) == ["own1", "s0", "s1", "s2"]
    assert await listed(store, None) == ["own2", "own1", "s0", "s1", "s2"]


async def test_what_has_grown_shares_its_messages(store: Store) -> None:
    await store.import_sessions([Opening(session=past("s1"), transcript=said("first words", "answer"))])
    stored = await store.transcript(await store.session("s1"))
    more = Opening(session=past("s2", parent_id="s1"), transcript=[*stored, *said("second words")])
    assert await store.import_sessions([more]) == [True]
    grown = await store.transcript(await store.session("s2"))
    assert [note_of(each)["id"] for each in grown[:2]] == [note_of(each)["id"] for each in stored]
    assert len(await store.search("first", key(), 5)) == 1


async def test_many_at_once_and_a_long_one(store: Store) -> None:
    many = [Opening(session=past(f"s{n}", str(n % 5)), transcript=said(f"w{n}", "w")) for n in range(40)]
    assert await store.import_sessions([*many, many[7]]) == [True] * 40 + [False]
    for n in range(40):
        assert len(await store.search(f"w{n}", key(str(n % 5)), 5)) == 1
    assert [len(found) for found in await store.holding(["w"], key("3"), 50)] == [8]
    assert (await store.status()).sessions == 40
    long = said(*(f"message {number}" for number in range(5_000)))
    assert await store.import_sessions([Opening(session=past("long"), transcript=long)]) == [True]
    session = await store.session("long")
    assert session.message_count == 5_000
    assert text_of((await store.transcript(session))[-1]) == "message 4999"


async def test_an_id_leads_to_what_has_it(store: Store) -> None:
    claim, ref = await in_session(store, user("hello"))
    await store.emit([outbound("o1", text="shown")])
    (message,) = await store.transcript(await store.session(ref.id))
    before = await store.named("e-s1", ["test"])
    assert [(fate.item.id, fate.outcome, fate.ended_at) for fate in before.fates] == [(claim.item.id, None, None)]
    await finish(store, claim)
    by_event, by_id = await store.named("e-s1", ["other", "test"]), await store.named(claim.item.id, [])
    assert [fate.outcome for fate in by_event.fates] == ["answered"]
    assert by_event.fates[0] in by_id.fates
    assert by_event.fates[0].ended_at is not None
    found = (await store.named(note_of(message)["id"], [])).message
    assert found is not None
    assert (found.session_id, text_of(found.message)) == (ref.id, "hello")
    row = (await store.named("o1", [])).row
    assert row is not None
    assert row.text == "shown"
    assert (await store.named("e-s1", ["other"])).fates == ()


async def test_the_calls_of_a_key_between_two_moments(store: Store) -> None:
    _, ref = await in_session(store, user("hello"))
    session = await store.session(ref.id)
    used = CanonicalUsage(input_tokens=5, output_tokens=2)
    entry = LedgerEntry(at=START, purpose="turn", provider="p", model="m", usage=used, cost_usd=0.5)
    entries = [entry, replace(entry, at=START + 10, cost_usd=None), replace(entry, at=START + 20, purpose="memory")]
    await store.charge(session, entries[::-1])
    found = await store.calls(session.key, START, START + 10)
    assert [(call.session_id, call.entry) for call in found] == [(ref.id, each) for each in entries[:2]]
    assert await store.calls(key("2"), 0, START * 2) == []


async def test_texts_that_no_encoding_takes_come_along(store: Store) -> None:
    odd = "half a pair \ud800, a zero \x00, right to left \u202e مرحبا 你好"
    opening = Opening(session=past("s1", title=odd, model=odd), transcript=said(odd, odd))
    assert await store.import_sessions([opening]) == [True]
    session = await store.session("s1")
    assert "你好" in (session.title or "")
    assert text_of((await store.transcript(session))[0]) == odd
    assert len(await store.search("你好", key(), 5)) == 1
