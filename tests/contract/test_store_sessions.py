"""Sessions: one tip per key, ends that happen once, continuations by compare-and-swap."""

from __future__ import annotations

import asyncio

import pytest

from gateway.domain.message import note_of, user
from gateway.domain.session import Compaction, Session
from gateway.runtime.errors import SessionConflict, SessionNotFound
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Claim, Opening
from tests.support.store_kit import (
    START,
    Bench,
    claimed,
    contents,
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


def compaction(parent: str, child: str, at: float = START + 10) -> Compaction:
    """A run that took 4 messages to 2."""
    return Compaction(
        at=at,
        parent_id=parent,
        child_id=child,
        trigger="manual",
        messages_before=4,
        messages_after=2,
        tokens_before=14,
        tokens_after=7,
        focus="the plan",
        fallback=True,
        error="why",
    )


async def compacted(store: Store, claim: Claim, parent: Session, child_id: str, at: float = START + 10) -> Session:
    """Continue a session whose transcript becomes one summary."""
    child = new_session(child_id, parent_id=parent.id, started_at=at, compaction_count=parent.compaction_count + 1)
    opening = Opening(session=child, transcript=[user("summary", tokens=1, summary=True)])
    present = await store.session(parent.id)
    return await store.continue_session(
        claim.lease, parent.ref, opening, present.message_count, compaction(parent.id, child_id, at)
    )


async def test_a_key_has_one_session(bench: Bench) -> None:
    store = await bench.open()
    assert await store.tip(key()) is None
    claim, session = await in_session(store)
    assert session == new_session("s1")
    with pytest.raises(SessionConflict):
        await store.open_session(claim.lease, Opening(session=new_session("s2")))
    with pytest.raises(SessionNotFound):
        await store.session("s2")
    with pytest.raises(SessionConflict):
        await store.open_session(claim.lease, Opening(session=new_session("s3", "2")))
    store = await bench.crash(store)
    assert await store.tip(key()) == session == await store.session("s1")


async def test_every_field_of_a_session_survives(bench: Bench) -> None:
    store = await bench.open()
    claim = await claimed(store)
    session = new_session(
        "s1",
        title="名 \x00",
        engine_state={"nested": [1, {"b": None}]},
        expires_at=START + 1,
        announced=("a", "b"),
        compaction_count=3,
        last_prompt_tokens=5,
        reported_messages=1,
        cost_usd=0.25,
        last_active_at=START,
    )
    assert await store.open_session(claim.lease, Opening(session=session)) == session
    store = await bench.crash(store)
    assert await store.session("s1") == session


async def test_an_end_moves_the_tip_and_owes_the_hook_once(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store)
    assert await store.end_session(claim.lease, session.ref, "reset", START + 5, None) is None
    assert await store.tip(key()) is None
    ended = await store.session("s1")
    assert (ended.ended_at, ended.end_reason, ended.hook) == (START + 5, "reset", "pending")
    assert ended.epoch > session.epoch
    for ref in (session.ref, ended.ref):
        with pytest.raises(SessionConflict):
            await store.end_session(claim.lease, ref, "expired", START + 6, None)
        with pytest.raises(SessionConflict):
            await store.record_step(claim.lease, ref, claim.item, step(user("late")))
    store = await bench.crash(store)
    assert [each.id for each in await store.pending_hooks(9)] == ["s1"]
    await store.hook_done("s1")
    await store.hook_done("s1")
    assert await store.pending_hooks(9) == []
    assert (await store.session("s1")).hook == "done"


async def test_hooks_are_owed_in_the_order_of_the_ends_whatever_the_clock_says(store: Store) -> None:
    for number, at in enumerate([START + 9, START + 1, START + 5]):
        claim, session = await in_session(store, session_id=f"s{number}", chat=str(number))
        await store.end_session(claim.lease, session.ref, "expired", at, None)
    assert [each.id for each in await store.pending_hooks(9)] == ["s0", "s1", "s2"]
    assert [each.id for each in await store.pending_hooks(2)] == ["s0", "s1"]


async def test_an_end_can_open_the_next_session(store: Store) -> None:
    claim, session = await in_session(store)
    following = await store.end_session(
        claim.lease, session.ref, "switched", START + 1, Opening(session=new_session("s2"))
    )
    assert following == await store.tip(key())
    assert following is not None
    assert following.id == "s2"


async def test_a_continuation_ends_the_parent_and_moves_the_tip(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store)
    stored = await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(1), *exchange(2)))
    late = await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(3)))
    child = new_session("s2", parent_id="s1", started_at=START + 10, compaction_count=1)
    opening = Opening(session=child, transcript=[user("summary", tokens=2, summary=True), stored[3]])
    opened = await store.continue_session(claim.lease, session.ref, opening, 4, compaction("s1", "s2"))
    assert opened == replace(child, message_count=4, transcript_tokens=2 + 4 + 7)
    for _ in range(2):
        parent = await store.session("s1")
        assert (parent.end_reason, parent.continuation_id, parent.hook) == ("compression", "s2", "none")
        assert parent.ended_at is not None
        assert child.started_at >= parent.ended_at
        assert await store.tip(key()) == opened
        kept = await transcript(store, "s2")
        assert contents(kept) == ["summary", "answer 2", "question 3", "answer 3"]
        assert kept[1:] == [stored[3], *late]
        assert contents(await transcript(store, "s1")) == [
            f"{who} {n}" for n in (1, 2, 3) for who in ("question", "answer")
        ]
        assert await store.pending_hooks(9) == []
        assert await store.compactions("s1") == await store.compactions("s2") == [compaction("s1", "s2")]
        store = await bench.crash(store)


async def test_only_its_owner_puts_a_session_into_a_project_and_a_continuation_stays_in_it(store: Store) -> None:
    claim, parent = await in_session(store)
    ended = replace(new_session("s_past"), key=replace(key(), thread="~a"))
    await store.import_sessions([Opening(session=ended, transcript=(user("hello"),))])
    await store.set_project(key("2"), [parent.id], "p_2")
    assert (await store.session(parent.id)).project == ""
    await store.set_project(key(), [parent.id, ended.id, "s_none"], "p_1")
    child = await compacted(store, claim, parent, "s_child")  # which knows the parent as it was before
    found = {each.id: each.project for each in await store.own_sessions(key(), 9)}
    assert found == {parent.id: "p_1", ended.id: "p_1", child.id: "p_1"}
    await store.set_project(key(), [ended.id], "")
    assert (await store.session(ended.id)).project == ""


async def test_a_continuation_that_lost_the_race_changes_nothing(store: Store) -> None:
    claim, session = await in_session(store, *exchange(1))
    changed = await store.update_session(claim.lease, session.ref, model="bigger")
    opening = Opening(session=new_session("s2", parent_id="s1"), transcript=[user("summary")])
    with pytest.raises(SessionConflict):
        await store.continue_session(claim.lease, session.ref, opening, 2, compaction("s1", "s2"))
    assert await store.tip(key()) == changed
    assert await store.compactions("s1") == []
    with pytest.raises(SessionNotFound):
        await store.session("s2")
    with pytest.raises(SessionConflict):
        await store.continue_session(claim.lease, moved(changed.ref, 1), opening, 2, compaction("s1", "s2"))


async def test_two_continuations_at_once_make_one(store: Store) -> None:
    claim, session = await in_session(store, *exchange(1))
    results = await asyncio.gather(
        *(compacted(store, claim, session, name) for name in ("a", "b", "c")), return_exceptions=True
    )
    won = [result for result in results if isinstance(result, Session)]
    assert len(won) == 1
    assert sum(isinstance(result, SessionConflict) for result in results) == 2
    assert await store.tip(key()) == won[0]


async def test_the_journal_follows_a_continuation_in_the_middle_of_a_turn(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store)
    await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(1)))
    child = await compacted(store, claim, session, "s2")
    store = await bench.crash(store)
    claim = await store.claim_next("w")
    found = await store.journal(claim.item)
    assert found is not None
    assert (found.session_id, found.steps) == ("s2", 1)
    await store.record_step(claim.lease, child.ref, claim.item, step(*exchange(2)))
    assert contents(await transcript(store, "s2")) == ["summary", "question 2", "answer 2"]


async def test_a_lineage_is_found_from_any_of_its_sessions(store: Store) -> None:
    claim, session = await in_session(store)
    for number in (2, 3, 4):
        session = await compacted(store, claim, session, f"s{number}", START + number)
    branch = new_session("b", parent_id="s4", started_at=START + 99)
    await store.end_session(claim.lease, session.ref, "switched", START + 99, Opening(session=branch))
    for each in ("s1", "s3", "s4"):
        assert [found.id for found in await store.lineage(each)] == ["s1", "s2", "s3", "s4"]
    assert [found.id for found in await store.lineage("b")] == ["b"]
    assert [each.child_id for each in await store.compactions("s2")] == ["s2", "s3"]
    with pytest.raises(SessionNotFound):
        await store.lineage("nobody")


async def test_updates_bump_the_epoch_only_for_model_and_prompt(store: Store) -> None:
    claim, session = await in_session(store)
    mild = await store.update_session(
        claim.lease, session.ref, title="T", engine_state={"x": 1}, announced=("a",), expires_at=None
    )
    assert mild == replace(session, title="T", engine_state={"x": 1}, announced=("a",))
    same = await store.update_session(claim.lease, mild.ref, model=mild.model)
    assert same.epoch == mild.epoch
    prompted = await store.update_session(claim.lease, mild.ref, system_prompt="Other.", model="n")
    assert (prompted.system_prompt, prompted.model, prompted.epoch) == ("Other.", "n", mild.epoch + 1)
    assert await store.session("s1") == prompted
    chosen = await store.update_session(claim.lease, prompted.ref, model_chosen_at="openai")
    assert chosen == replace(prompted, model_chosen_at="openai")
    assert await store.update_session(claim.lease, prompted.ref, model_chosen_at=None) == prompted
    moved = await store.update_session(claim.lease, prompted.ref, places=("-1/群", "-1"))
    assert moved == replace(prompted, places=("-1/群", "-1"))
    assert await store.update_session(claim.lease, prompted.ref, places=()) == prompted
    with pytest.raises(SessionConflict):
        await store.update_session(claim.lease, mild.ref, title="late")
    with pytest.raises(ValueError, match="message_count"):
        await store.update_session(claim.lease, prompted.ref, message_count=9)


async def test_due_sessions_are_claimed_once_earliest_first(store: Store) -> None:
    for chat, expires in (("1", START + 3), ("2", START + 1), ("3", START + 99), ("4", None), ("5", START + 2)):
        claim = await claimed(store, f"e{chat}", chat)
        await store.open_session(claim.lease, Opening(session=new_session(f"s{chat}", chat, expires_at=expires)))
        if chat == "5":
            await store.end_session(claim.lease, (await store.session("s5")).ref, "reset", START, None)
    assert await store.claim_due_sessions(START, 9) == []
    assert [each.id for each in await store.claim_due_sessions(START + 10, 1)] == ["s2"]
    assert [each.id for each in await store.claim_due_sessions(START + 10, 9)] == ["s1"]
    assert await store.claim_due_sessions(START + 10, 9) == []
    # Whoever claimed them may have died: they come up again.
    assert [each.id for each in await store.claim_due_sessions(START + 2000, 9)] == ["s2", "s1", "s3"]


async def test_a_due_session_with_another_deadline_is_offered_when_that_comes(store: Store) -> None:
    claim = await claimed(store)
    session = await store.open_session(claim.lease, Opening(session=new_session("s1", expires_at=START)))
    assert len(await store.claim_due_sessions(START + 1, 9)) == 1
    await store.update_session(claim.lease, session.ref, expires_at=START + 60)  # it was used meanwhile
    assert await store.claim_due_sessions(START + 59, 9) == []
    assert len(await store.claim_due_sessions(START + 61, 9)) == 1
    assert await store.claim_due_sessions(START + 62, 9) == []


async def test_sessions_are_listed_newest_first_within_their_key(store: Store) -> None:
    claim, session = await in_session(store)
    for number in (2, 3):
        opening = Opening(session=new_session(f"s{number}", started_at=START - number))
        opened = await store.end_session(claim.lease, session.ref, "reset", START, opening)
        assert opened is not None
        session = opened
    await in_session(store, session_id="other", chat="2")
    assert [each.id for each in await store.sessions(key(), 9)] == ["s3", "s2", "s1"]
    assert [each.id for each in await store.sessions(key(), 1, offset=1)] == ["s2"]
    assert [each.id for each in await store.sessions(None, 9)] == ["other", "s3", "s2", "s1"]


async def test_a_transcript_grows_under_readers(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store)

    async def write() -> None:
        for number in range(20):
            await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(number)))

    async def read() -> None:
        seen = 0
        while seen < 40:
            found = await store.transcript(await store.session("s1"))
            assert len(found) >= seen
            assert contents(found) == [f"{who} {n}" for n in range(len(found) // 2) for who in ("question", "answer")]
            seen = len(found)
            await asyncio.sleep(0)  # what is cached is answered without waiting

    await asyncio.gather(write(), read(), read())
    assert (await store.session("s1")).message_count == 40
    assert len({note_of(message)["id"] for message in await transcript(store, "s1")}) == 40
    await finish(store, claim)
    store = await bench.crash(store)
    assert len(await transcript(store, "s1")) == 40
