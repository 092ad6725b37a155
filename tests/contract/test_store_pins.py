"""The contract of pins: they belong to a key, and the prompt of its session changes with them."""

from __future__ import annotations

import pytest

from gateway.domain.rule import Pin, Pins
from gateway.domain.session import Session
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Opening, Rebuilt
from tests.support.store_kit import (
    START,
    Bench,
    claimed,
    exchange,
    finish,
    in_session,
    key,
    moved,
    new_session,
    step,
    transcript,
)

pytest_plugins = ["tests.support.stores"]


def pins(*texts: str, by: str = "1") -> Pins:
    return Pins(rules=tuple(Pin(text=text, at=START + 0.1, by="Anna") for text in texts), set_by=by)


def rebuilt(session: Session, prompt: str = "Other.", tokens: int = 0) -> Rebuilt:
    return Rebuilt(ref=session.ref, system_prompt=prompt, last_prompt_tokens=tokens)


async def test_pins_are_kept_under_their_key_before_there_is_a_session(bench: Bench) -> None:
    store = await bench.open()
    claim = await claimed(store)
    assert await store.set_pins(claim.lease, pins("never a", "never b"), None) is None
    assert await store.pins(key()) == pins("never a", "never b")
    assert await store.pins(key("2")) == Pins()
    await finish(store, claim)
    store = await bench.crash(store)
    assert await store.pins(key()) == pins("never a", "never b")


async def test_they_are_replaced_as_a_whole_and_who_removed_the_last_is_remembered(store: Store) -> None:
    claim = await claimed(store)
    for now in (pins("a", "b"), pins("b", by="2"), pins(by="3")):
        await store.set_pins(claim.lease, now, None)
        assert await store.pins(key()) == now


async def test_any_text_comes_back_as_it_was(store: Store) -> None:
    claim = await claimed(store)
    odd = pins(
        "\x00", "  two\nlines\t\r\n", "\U0001f600 \ud83d", "永远用中文回答", '{"rules": []}', "'; --", by="{p03}"
    )
    await store.set_pins(claim.lease, odd, None)
    assert await store.pins(key()) == odd


async def test_the_prompt_of_the_present_session_changes_in_the_same_step(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store, *exchange(1))
    given = await store.set_pins(claim.lease, pins("a"), rebuilt(session, "Ünlike", tokens=77))
    wanted = replace(session, system_prompt="Ünlike", last_prompt_tokens=77, epoch=session.epoch + 1)
    assert given == wanted
    assert await store.tip(key()) == wanted
    assert len(await transcript(store, session.id)) == 2
    store = await bench.crash(store)
    assert await store.tip(key()) == wanted
    assert await store.pins(key()) == pins("a")


async def test_a_step_that_knows_the_session_as_it_was_is_refused(store: Store) -> None:
    claim, session = await in_session(store, *exchange(1))
    now = await store.set_pins(claim.lease, pins("a"), rebuilt(session))
    assert now is not None
    with pytest.raises(SessionConflict):
        await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(2)))
    await store.record_step(claim.lease, now.ref, claim.item, step(*exchange(2)))


@pytest.mark.parametrize("how", ["stale epoch", "no session told", "another key's", "ended", "stale fence"])
async def test_a_refused_change_changes_nothing(store: Store, how: str) -> None:
    _, other = await in_session(store, chat="2", session_id="s2")
    claim, session = await in_session(store, *exchange(1))
    kept = await store.set_pins(claim.lease, pins("kept"), rebuilt(session, "Kept."))
    assert kept is not None
    lease, change = claim.lease, rebuilt(kept)
    if how == "stale epoch":
        change = replace(change, ref=moved(kept.ref))
    elif how == "another key's":
        change = rebuilt(other)
    elif how == "stale fence":
        lease = replace(lease, fence=lease.fence + 1)
    elif how == "ended":
        opening = Opening(session=new_session("s1b", system_prompt="Kept."))
        await store.end_session(lease, kept.ref, "reset", START, opening)
    with pytest.raises(SessionConflict):
        await store.set_pins(lease, pins("lost"), None if how == "no session told" else change)
    assert await store.pins(key()) == pins("kept")
    tip = await store.tip(key())
    assert tip is not None
    assert tip.system_prompt == "Kept."


async def test_they_outlive_their_session(store: Store) -> None:
    claim, session = await in_session(store)
    now = await store.set_pins(claim.lease, pins("a"), rebuilt(session))
    assert now is not None
    await store.end_session(claim.lease, now.ref, "reset", START, None)
    assert await store.tip(key()) is None
    assert await store.pins(key()) == pins("a")
    await store.set_pins(claim.lease, pins("a", "b"), None)
    assert await store.pins(key()) == pins("a", "b")


async def test_the_keys_of_one_chat_have_pins_of_their_own(store: Store) -> None:
    claim = await claimed(store)
    await store.set_pins(claim.lease, pins("mine"), None)
    for other in (replace(key(), user="u1"), replace(key(), thread="1"), replace(key(), platform="other")):
        assert await store.pins(other) == Pins()
