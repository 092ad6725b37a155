"""One turn: its journal, its steps, its end in one transaction, and what a crash leaves of it."""

from __future__ import annotations

import asyncio

import pytest

from gateway.domain.message import Message, assistant, note_of, tool_result, user, wire
from gateway.domain.session import Todo
from gateway.domain.usage import CanonicalUsage, LedgerEntry
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Beginning, Opening, Patch, StepRecord, ToolIntent
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
    outbound,
    put,
    reminder,
    step,
    transcript,
)

pytest_plugins = ["tests.support.stores"]


async def test_messages_come_back_as_they_were_stored(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store)
    said: list[Message] = [
        user("你好 \ud83d \x00 ½", tokens=3, person="Ann", at=START - 5),
        {
            "role": "user",
            "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "u"}}],
        },
        assistant(None, [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"b": 1, "a": 2}'}}]),
        tool_result("c1", "done", derived_from=["1"]),
    ]
    stored = await store.record_step(claim.lease, session.ref, claim.item, step(*said))
    assert [wire(message) for message in stored] == [wire(message) for message in said]
    assert all("id" not in note_of(message) for message in said)
    assert len({note_of(message)["id"] for message in stored}) == 4
    assert note_of(stored[0]) == {"id": note_of(stored[0])["id"], "tokens": 3, "person": "Ann", "at": START - 5}
    assert await transcript(store, "s1") == list(stored)
    store = await bench.crash(store)
    again = await transcript(store, "s1")
    assert again == list(stored)
    assert [list(message) for message in again] == [list(message) for message in stored]  # key order too


async def test_a_finished_turn_is_all_there_at_once(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store)
    usage = CanonicalUsage(input_tokens=10, output_tokens=4, cache_read_tokens=2, reasoning_tokens=1)
    entry = LedgerEntry(at=START, purpose="turn", provider="p", model="m", usage=usage, cost_usd=0.5)
    patch = Patch(
        at=START + 9,
        usage=usage,
        cost_usd=0.5,
        last_prompt_tokens=12,
        reported_messages=1,
        engine_state={"strikes": 1},
        todos=(Todo(text="buy milk"), Todo(text="done it", status="done")),
        expires_at=START + 100,
        announced=("65",),
    )
    record = StepRecord(messages=exchange(1), patch=patch, ledger=[entry])
    end = await store.finish_turn(claim.lease, session.ref, claim.item, record, "answered", [outbound("o1")])
    assert contents(end.messages) == ["question 1", "answer 1"]
    assert [(row.id, row.state, row.attempts) for row in end.outbound] == [("o1", "sending", 1)]
    assert end.next is None
    store = await bench.crash(store)
    found = await store.tip(key())
    assert found == replace(
        session,
        usage=usage,
        cost_usd=0.5,
        last_prompt_tokens=12,
        reported_messages=1,
        engine_state={"strikes": 1},
        todos=patch.todos,
        expires_at=START + 100,
        announced=("65",),
        last_active_at=START + 9,
        transcript_tokens=7,
        message_count=2,
    )
    assert (await store.usage(START, "model"))[0].usage == usage
    assert await transcript(store, "s1") == list(end.messages)


async def test_a_patch_leaves_out_what_it_does_not_name(store: Store) -> None:
    claim, session = await in_session(store)
    full = step(engine_state={"a": 1}, todos=(Todo(text="t"),), expires_at=START + 5, last_prompt_tokens=7)
    await store.record_step(claim.lease, session.ref, claim.item, full)
    await store.record_step(claim.lease, session.ref, claim.item, step(user("x", tokens=2)))
    found = await store.session("s1")
    assert (found.engine_state, found.expires_at, found.last_prompt_tokens) == ({"a": 1}, START + 5, 7)
    assert (found.message_count, found.transcript_tokens, found.epoch) == (1, 2, 1)


async def test_a_failed_end_leaves_nothing_behind(store: Store) -> None:
    claim, session = await in_session(store)
    with pytest.raises(SessionConflict):
        await store.finish_turn(
            claim.lease, moved(session.ref), claim.item, step(*exchange(1)), "answered", [outbound("o1")]
        )
    assert await transcript(store, "s1") == []
    assert await store.outbox(None, 9) == []
    assert (await store.status()).waiting == 1
    end = await store.finish_turn(
        claim.lease, session.ref, claim.item, step(*exchange(1)), "answered", [outbound("o1")]
    )
    assert [row.id for row in end.outbound] == ["o1"]


async def test_a_stale_epoch_or_a_foreign_session_is_refused(store: Store) -> None:
    claim, session = await in_session(store)
    other, _ = await in_session(store, session_id="s2", chat="2")
    with pytest.raises(SessionConflict):
        await store.record_step(other.lease, session.ref, other.item, step(user("x")))
    changed = await store.update_session(claim.lease, session.ref, model="bigger")
    with pytest.raises(SessionConflict):
        await store.record_step(claim.lease, session.ref, claim.item, step(user("x")))
    await store.record_step(claim.lease, changed.ref, claim.item, step(user("x")))
    assert (await store.session("s1")).message_count == 1


async def test_a_write_that_does_not_know_of_an_earlier_one_is_refused(store: Store) -> None:
    claim, session = await in_session(store, *exchange(0))
    record = replace(step(*exchange(1)), after=2)
    await store.record_step(claim.lease, session.ref, claim.item, record)  # given up by its caller, and landed
    with pytest.raises(SessionConflict):
        await store.record_step(claim.lease, session.ref, claim.item, record)
    with pytest.raises(SessionConflict):
        await store.finish_turn(claim.lease, session.ref, claim.item, record, "answered", [outbound("o1")])
    assert len(await transcript(store, "s1")) == 4
    assert await store.outbox(None, 9) == []
    journal = await store.journal(claim.item)
    assert journal is not None
    assert journal.steps == 1
    end = replace(step(*exchange(2)), after=4)
    await store.finish_turn(claim.lease, session.ref, claim.item, end, "answered", [])
    assert len(await transcript(store, "s1")) == 6


async def test_one_conflict_does_not_undo_its_neighbours(store: Store) -> None:
    claims = [await in_session(store, session_id=f"s{n}", chat=str(n)) for n in range(6)]
    results = await asyncio.gather(
        *(
            store.record_step(claim.lease, moved(session.ref, -(n % 2)), claim.item, step(user("x")))
            for n, (claim, session) in enumerate(claims)
        ),
        return_exceptions=True,
    )
    assert [isinstance(result, SessionConflict) for result in results] == [False, True] * 3
    assert [(await store.session(f"s{n}")).message_count for n in range(6)] == [1, 0] * 3


async def test_the_journal_tells_a_resumed_turn_how_far_it_got(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store)
    assert await store.journal(claim.item) is None
    await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(1)))
    intents = (ToolIntent(call_id="c1", tool="shell"), ToolIntent(call_id="c2", tool="mail"))
    stored = await store.begin_tools(claim.lease, session.ref, claim.item, step(assistant("calling")), intents)
    assert note_of(stored[0])["id"]
    store = await bench.crash(store)
    claim = await store.claim_next("w")
    found = await store.journal(claim.item)
    assert found is not None
    assert claim.begins in (None, await store.beginning(claim.item))
    assert (found.session_id, found.steps, found.intents, found.reply) == ("s1", 1, intents, None)
    await store.record_step(claim.lease, session.ref, claim.item, step(tool_result("c1", "unknown")))
    found = await store.journal(claim.item)
    assert found is not None
    assert (found.steps, found.intents) == (2, ())
    await finish(store, claim)
    assert await store.journal(claim.item) is None


async def test_a_turn_begins_with_its_journal_session_and_reminders_of_its_own_key(store: Store) -> None:
    await store.add_reminder(reminder("r1", "2"), 9, 9)
    claim = await claimed(store, "e0", "0")
    nothing = Beginning(journal=None, tip=None, reminders=False)
    assert await store.beginning(claim.item) == nothing
    assert claim.begins in (None, nothing)
    claim, session = await in_session(store, chat="2")
    assert await store.beginning(claim.item) == Beginning(journal=None, tip=session, reminders=True)
    await store.record_step(claim.lease, session.ref, claim.item, step(user("x")))
    begins = await store.beginning(claim.item)
    assert begins.journal is not None
    assert (begins.journal.steps, begins.tip) == (1, await store.tip(claim.item.key))


async def test_intents_alone_are_a_journal(store: Store) -> None:
    claim, session = await in_session(store)
    intents = (ToolIntent(call_id="c1", tool="shell"),)
    await store.begin_tools(claim.lease, session.ref, claim.item, step(user("do it")), intents)
    found = await store.journal(claim.item)
    assert found is not None
    assert (found.steps, found.intents) == (0, intents)


async def test_a_streaming_reply_takes_its_place_when_it_has_its_text(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store)
    reply = await store.open_reply(claim.lease, claim.item, outbound("o1", text="", session_id="s1"))
    assert reply.state == "streaming"
    await store.note_streamed("o1", "m77")
    (beside,) = await store.emit([outbound("o2"), outbound("o3")])
    assert beside.id == "o2"
    assert await store.mark_sent("o2", "m2") is not None
    store = await bench.crash(store)
    (beside,) = await store.claim_outbound(9)
    assert beside.id == "o3"
    claim = await store.claim_next("w")
    found = await store.journal(claim.item)
    assert found is not None
    assert found.reply is not None
    assert (found.session_id, found.reply.id, found.reply.platform_message_id) == ("s1", "o1", "m77")
    assert (await store.open_reply(claim.lease, claim.item, outbound("o9"))).id == "o1"
    end = await store.finish_turn(
        claim.lease,
        session.ref,
        claim.item,
        step(*exchange(1)),
        "answered",
        [outbound("o1", text="whole"), outbound("o1b", text="and more")],
    )
    assert end.outbound == ()  # one message of a chat is on its way at a time
    assert await store.emit([outbound("o4")]) == ()
    row = await store.mark_sent("o3", "m3")
    assert row is not None
    assert (row.id, row.text, row.state, row.platform_message_id, row.attempts) == ("o1", "whole", "sending", "m77", 1)
    following = await store.mark_sent("o1", "m77")
    assert following is not None
    assert (following.id, following.state, following.attempts) == ("o1b", "sending", 1)
    following = await store.mark_sent("o1b", "m78")
    assert following is not None
    assert following.id == "o4"


async def test_a_reply_that_never_got_its_text_is_refused(store: Store) -> None:
    claim = await claimed(store)
    await store.open_reply(claim.lease, claim.item, outbound("o1", text=""))
    await store.emit([outbound("o2")])
    await finish(store, claim)
    assert {row.id: row.state for row in await store.outbox(None, 9)} == {"o1": "refused", "o2": "sending"}


async def test_a_late_note_of_a_streamed_message_changes_nothing(store: Store) -> None:
    claim = await claimed(store)
    await store.open_reply(claim.lease, claim.item, outbound("o1", text=""))
    await finish(store, claim, outbound("o1", text="whole"))
    await store.mark_sent("o1", "m1")
    await store.note_streamed("o1", "m2")
    assert [row.platform_message_id for row in await store.outbox(None, 9)] == ["m1"]


async def test_the_next_item_comes_with_the_end_and_is_counted(bench: Bench) -> None:
    store = await bench.open()
    claim = await claimed(store, "e1")
    await put(store, "e2")
    end = await finish(store, claim)
    assert end.next is not None
    store = await bench.crash(store)
    assert (await store.claim_next("w")).item.attempts == 2


@pytest.mark.parametrize("rounds", range(6))
async def test_an_end_whose_caller_is_cancelled_loses_nothing(store: Store, rounds: int) -> None:
    claim = await claimed(store, "e1")
    await put(store, "e2")
    ending = asyncio.create_task(finish(store, claim, outbound("o1")))
    for _ in range(rounds):
        await asyncio.sleep(0)
    ending.cancel()
    await asyncio.gather(ending, return_exceptions=True)
    if not await store.outbox(None, 9) and rounds == 0:
        return  # cancelled before it began: nothing was written
    item = (await store.claim_next("w")).item if ending.cancelled() else ending.result().next
    assert item is not None
    assert (item.inbound.event_id, item.attempts) == ("e2", 1)
    rows = await store.claim_outbound(9) if ending.cancelled() else list(ending.result().outbound)
    assert [(row.id, row.attempts, row.ambiguous) for row in rows] == [("o1", 1, 0)]


async def test_a_record_without_a_session_is_a_mistake(store: Store) -> None:
    claim = await claimed(store)
    with pytest.raises(ValueError, match="both"):
        await store.finish_turn(claim.lease, None, claim.item, step(user("x")), "answered", ())


async def test_shared_messages_are_stored_once(store: Store) -> None:
    claim, session = await in_session(store)
    stored = await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(1)))
    opening = Opening(session=new_session("s2", parent_id="s1"), transcript=[*stored, user("new", tokens=1)])
    child = await store.end_session(claim.lease, session.ref, "switched", START + 1, opening)
    assert child is not None
    assert (child.message_count, child.transcript_tokens) == (3, 8)
    first, second, third = await transcript(store, "s2")
    assert [first, second] == list(stored)
    assert note_of(third)["id"] not in {note_of(first)["id"], note_of(second)["id"]}
