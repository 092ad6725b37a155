"""The contract of vectors: messages are found by what they mean, and nothing of a vector outlives its message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing

import apsw
import pytest

from gateway.domain.message import Message, assistant, note_of, text_of, tool_result, user
from gateway.store.port import Store
from gateway.store.records import Erasure, Forgetting, Meaning, Rewriting, Vector
from gateway.store.shared.vectors import NONE, packed, size_of
from tests.support.store_kit import START, Bench, in_session, key, transcript
from tests.support.stores import MemoryBench, PostgresBench, RedisBench, SqliteBench

pytest_plugins = ["tests.support.stores"]

MODEL = "tiny"
CAR, SHIP, FOOD, REST = (1.0, 0.1, -0.2, 0.3), (0.1, 1.0, -0.3, -0.2), (-0.3, -0.2, 1.0, 0.1), (-0.5, -0.5, -0.5, 1.0)
TALK = (
    user("My Corsa is red."),
    assistant("A fine colour."),
    user("The ferry leaves at nine."),
    assistant("Bring a coat."),
    user("I had noodles."),
)


def vector_of(text: str) -> tuple[float, ...]:
    return next((each for word, each in (("Corsa", CAR), ("ferry", SHIP), ("noodles", FOOD)) if word in text), REST)


def meaning(numbers: tuple[float, ...], model: str = MODEL) -> Meaning:
    return Meaning(model=model, vector=packed(numbers))


async def embed(store: Store, model: str = MODEL, limit: int = 3, longer: int = 0) -> list[str]:
    """Give every message a vector, as the gateway does; the texts in that order."""
    seen: list[str] = []
    length = 0
    while some := await store.unembedded(model, length, limit):
        assert len({each.key for each in some}) == 1
        assert len(some) <= limit
        kept: Mapping[str, Vector] = {
            each.message_id: packed((*vector_of(each.text), *[0.1] * longer)) if each.text else NONE for each in some
        }
        await store.keep_vectors(model, some[0].key, kept)
        length = length or size_of(kept)
        seen += [each.text for each in some if each.text]
    return seen


async def found(store: Store, words: str, near: Meaning | None, chat: str | None = "1") -> list[str]:
    passages = await store.search(words, None if chat is None else key(chat), 5, near)
    return [text_of(each.hit.message) for each in passages]


async def test_what_means_the_same_is_found_without_a_word_of_it(bench: Bench) -> None:
    store = await bench.open()
    await in_session(store, *TALK)
    assert sorted(await embed(store)) == sorted(map(text_of, TALK))
    assert await found(store, "what do I drive", None) == []
    assert (await found(store, "what do I drive", meaning(CAR)))[0] == "My Corsa is red."
    assert (await found(store, "what do I drive", meaning(CAR), chat=None))[0] == "My Corsa is red."
    assert await found(store, "what do I drive", meaning(CAR, "another")) == []
    assert await found(store, "what do I drive", meaning((*CAR, 0.5))) == []


async def test_words_and_meaning_are_fused(bench: Bench) -> None:
    store = await bench.open()
    await in_session(store, *TALK, user("A Corsa of noodles."))
    await embed(store)
    assert (await found(store, "noodles", meaning(FOOD)))[0] == "I had noodles."
    assert (await found(store, '"of noodles" please', meaning(CAR)))[0] == "A Corsa of noodles."
    assert await found(store, '"of noodles"', meaning(CAR)) == ["A Corsa of noodles."]


async def test_other_conversations_stay_apart(bench: Bench) -> None:
    store = await bench.open()
    await in_session(store, *TALK, chat="1", session_id="s1")
    await in_session(store, user("Hello."), chat="2", session_id="s2")
    await embed(store)
    assert await found(store, "what do I drive", meaning(CAR), chat="2") == ["Hello."]


async def test_new_messages_come_before_old_ones_and_a_restart_goes_on(bench: Bench) -> None:
    store = await bench.open()
    await in_session(store, *(user(f"number {number}") for number in range(9)))
    some = await store.unembedded(MODEL, 0, 3)
    assert {each.text for each in some} == {"number 6", "number 7", "number 8"}
    await store.keep_vectors(MODEL, some[0].key, {each.message_id: packed(REST) for each in some})
    await in_session(store, user("number 9"), chat="2", session_id="s2")
    store = await bench.crash(store)
    assert set(await embed(store)) == {f"number {number}" for number in (9, 5, 4, 3, 2, 1, 0)}
    assert await store.unembedded(MODEL, 0, 3) == []


async def test_results_of_tools_and_refused_texts_have_none(bench: Bench) -> None:
    store = await bench.open()
    call = Message(
        role="assistant",
        content="",
        tool_calls=[{"id": "c", "type": "function", "function": {"name": "clock", "arguments": "{}"}}],
    )
    await in_session(store, user("What time is it?"), call, tool_result("c", "noon in Lima"), assistant("Noon."))
    assert sorted(await embed(store)) == ["Noon.", "What time is it?"]
    await in_session(store, user("refused"), chat="9", session_id="s9")
    (one,) = await store.unembedded(MODEL, 0, 3)
    await store.keep_vectors(MODEL, one.key, {one.message_id: NONE})
    assert await store.unembedded(MODEL, 0, 3) == []
    assert await found(store, "anything", meaning(REST), chat="9") == []


@pytest.mark.parametrize(("model", "longer"), [("other", 0), (MODEL, 4)], ids=["another model", "another length"])
async def test_another_model_makes_them_anew(bench: Bench, model: str, longer: int) -> None:
    store = await bench.open()
    await in_session(store, *TALK)
    await embed(store)
    if longer:  # the server has another model under the same name, and the next message shows it
        await in_session(store, user("The Corsa again."), chat="2", session_id="s2")
    assert sorted(await embed(store, model, longer=longer))[0] == "A fine colour."
    numbers = (*CAR, *[0.1] * longer)
    assert "Corsa" in (await found(store, "what do I drive", meaning(numbers, model)))[0]
    assert await found(store, "what do I drive", meaning(CAR)) == []
    assert _kept(bench) == len(TALK) + bool(longer)


@pytest.mark.parametrize("way", ["forget", "erase"])
async def test_nothing_of_a_vector_is_left_of_what_is_forgotten(bench: Bench, way: str) -> None:
    store = await bench.open()
    await in_session(store, *TALK)
    await embed(store)
    assert _kept(bench) == len(TALK)
    session = await store.session("s1")
    ids = [note_of(message)["id"] for message in await transcript(store, "s1")]
    if way == "erase":
        store = await bench.crash(store)
        await store.erase(None, Erasure(id="d1", key=key(), at=START))
        assert _kept(bench) == 0
    else:
        deed = Forgetting(
            id="d1",
            key=key(),
            at=START,
            item=None,
            tip=session.ref,
            removed=(ids[0],),
            sessions=(Rewriting(session_id="s1", freed=0, title=None, todos=()),),
        )
        await store.forget(None, deed)
        assert _kept(bench) == len(TALK) - 1
    # One that was on its way while the message went comes too late.
    await store.keep_vectors(MODEL, key(), {ids[0]: packed(CAR)})
    assert _kept(bench) == (0 if way == "erase" else len(TALK) - 1)
    assert "My Corsa is red." not in await found(store, "what do I drive", meaning(CAR))
    assert await store.unembedded(MODEL, 0, 5) == []


def _kept(bench: Bench) -> int:
    """How many vectors there are, in either form."""
    return len(list(_vectors(bench)))


def _vectors(bench: Bench) -> Iterator[object]:
    if isinstance(bench, RedisBench):
        for server in bench.servers:
            with server.client() as client:
                for name in client.keys("*:vectors:*"):
                    yield from client.hkeys(name)
    elif isinstance(bench, MemoryBench):
        yield from bench.space.vectors
    elif isinstance(bench, PostgresBench):
        yield from bench.server.ask("SELECT number FROM legato.entry WHERE length(numbers) > 0")
    else:
        assert isinstance(bench, SqliteBench)
        with closing(apsw.Connection(str(bench.path), flags=apsw.SQLITE_OPEN_READONLY)) as connection:
            yield from connection.execute("SELECT id FROM message_vectors").fetchall()
