"""The contract of questions: asked by the turn that runs, decided once, forgotten with their item."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from gateway.domain.approval import Approval
from gateway.domain.chat import Button, ChatAddress, Outbound, SessionKey
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Claim, ToolIntent
from tests.support.store_kit import START, Bench, claimed, finish, in_session, key, outbound, step

pytest_plugins = ["tests.support.stores"]

BUTTONS = ((Button(label="Yes ✓", token="approve t1"), Button(label="No", token="deny t1")),)


def chat(number: str = "1", thread: str | None = None) -> ChatAddress:
    return ChatAddress(platform="test", chat=number, thread=thread)


def question(claim: Claim, number: int = 1, **changes: Any) -> Approval:
    facts: dict[str, Any] = {
        "token": f"t{number}",
        "key": claim.lease.key,
        "item": claim.item.id,
        "call": f"7/call {number}",
        "number": number,
        "person": "u1",
        "question": "Run this? ls — 列 \ud83d",
        "shown_as": f"q{number}",
        "asked_at": START + number,
        "expires_at": START + 300,
    }
    return Approval(**{**facts, **changes})


def shown(number: int = 1, where: str = "1", **changes: Any) -> Outbound:
    return replace(outbound(f"q{number}", where, "May I?"), kind="question", **changes)


async def asked(store: Store, **changes: Any) -> tuple[Claim, Approval]:
    claim = await claimed(store)
    approval = question(claim, **changes)
    await store.ask(claim.lease, approval, [shown(buttons=BUTTONS)])
    return claim, replace(approval, question="Run this? ls — 列 \ud83d")


async def test_a_question_and_the_row_that_shows_it_are_one_step(bench: Bench) -> None:
    store = await bench.open()
    claim = await claimed(store)
    approval = question(claim, labels=("Forget", "Keep"))
    (row,) = await store.ask(claim.lease, approval, [shown(buttons=BUTTONS)])
    assert (row.id, row.kind, row.buttons, row.state) == ("q1", "question", BUTTONS, "sending")
    store = await bench.crash(store)
    assert await store.approvals(chat()) == [approval]
    (listed,) = await store.outbox(chat(), 5)
    assert (listed.id, listed.buttons) == ("q1", BUTTONS)


async def test_its_turn_finds_it_again(bench: Bench) -> None:
    store = await bench.open()
    claim, session = await in_session(store)
    await store.begin_tools(
        claim.lease,
        session.ref,
        claim.item,
        step(),
        [ToolIntent(call_id="a", tool="pay"), ToolIntent(call_id="b", tool="pay", waits=True)],
    )
    approval = question(claim)
    await store.ask(claim.lease, approval, [shown()])
    store = await bench.crash(store)
    journal = await store.journal(claim.item)
    assert journal is not None
    assert journal.approvals == (approval,)
    assert [(intent.call_id, intent.waits) for intent in journal.intents] == [("a", False), ("b", True)]


async def test_a_known_question_is_not_asked_twice(store: Store) -> None:
    claim, approval = await asked(store)
    again = replace(approval, question="Another?")
    assert await store.ask(claim.lease, again, [shown(2)]) == ()
    assert await store.approvals(chat()) == [approval]
    assert [row.id for row in await store.outbox(chat(), 5)] == ["q1"]


async def test_only_the_lane_that_runs_its_item_asks(store: Store) -> None:
    claim = await claimed(store)
    stale = replace(claim.lease, fence=claim.lease.fence + 1)
    for lease, approval in ((stale, question(claim)), (claim.lease, question(claim, item="999999"))):
        with pytest.raises(SessionConflict):
            await store.ask(lease, approval, [shown()])
    assert await store.approvals(chat()) == []
    assert await store.outbox(chat(), 5) == []


async def test_the_first_verdict_counts_and_is_shown(bench: Bench) -> None:
    store = await bench.open()
    _, approval = await asked(store)
    await store.mark_sent("q1", "platform-1")
    heard: list[SessionKey] = []
    store.on_decided(heard.append)
    first = await store.decide(approval, "approved", "u1", START + 5, [shown(2, edits="q1")])
    assert first is not None
    wanted = replace(approval, state="approved", decided_by="u1", decided_at=START + 5)
    assert (first.approval, first.first) == (wanted, True)
    assert [(row.id, row.edits, row.platform_message_id) for row in first.outbound] == [("q2", "q1", "platform-1")]
    assert heard == [key()]
    second = await store.decide(approval, "denied", "u9", START + 6, [shown(3)])
    assert second is not None
    assert (second.approval, second.first, second.outbound) == (wanted, False, ())
    assert heard == [key()]
    store = await bench.crash(store)
    assert await store.approvals(chat()) == [wanted]
    assert {row.id for row in await store.outbox(chat(), 5)} == {"q1", "q2"}


async def test_of_many_verdicts_at_once_one_counts(store: Store) -> None:
    _, approval = await asked(store)
    verdicts = [store.decide(approval, "approved" if n % 2 else "denied", f"u{n}", START, []) for n in range(8)]
    decisions = [decision for decision in await asyncio.gather(*verdicts) if decision is not None]
    (first,) = [decision for decision in decisions if decision.first]
    assert {decision.approval.decided_by for decision in decisions} == {first.approval.decided_by}


async def test_an_edit_finds_its_message_when_its_turn_comes(store: Store) -> None:
    """The question is still on its way when it is decided."""
    _, approval = await asked(store)
    decision = await store.decide(approval, "expired", None, START + 300, [shown(2, edits="q1")])
    assert decision is not None
    assert decision.outbound == ()
    sent = await store.mark_sent("q1", "platform-1")
    assert sent is not None
    assert (sent.id, sent.platform_message_id) == ("q2", "platform-1")


async def test_an_edit_of_what_was_never_shown_has_no_message(store: Store) -> None:
    _, approval = await asked(store)
    await store.decide(approval, "denied", "u1", START, [shown(2, edits="q1")])
    sent = await store.mark_refused("q1", "blocked")
    assert sent is not None
    assert (sent.id, sent.platform_message_id) == ("q2", None)


async def test_the_end_of_its_item_forgets_a_question(bench: Bench) -> None:
    store = await bench.open()
    claim, approval = await asked(store)
    await store.decide(approval, "approved", "u1", START, [])
    await finish(store, claim)
    assert await store.approvals(chat()) == []
    assert await store.decide(approval, "denied", "u1", START, [shown(2)]) is None
    store = await bench.crash(store)
    assert await store.approvals(chat()) == []
    assert {row.id for row in await store.outbox(chat(), 5)} == {"q1"}


async def test_a_chat_sees_its_own_questions_only_whatever_their_thread_or_person(store: Store) -> None:
    one = await claimed(store)
    other = await claimed(store, "e2", "2")
    await store.ask(one.lease, question(one, 2, asked_at=START + 9), [])
    await store.ask(one.lease, question(one, 3, asked_at=START + 9), [])
    await store.ask(one.lease, question(one, 1), [])
    await store.ask(other.lease, question(other, 4), [])
    assert [each.token for each in await store.approvals(chat("1", thread="5"))] == ["t1", "t2", "t3"]
    assert [each.token for each in await store.approvals(chat("2"))] == ["t4"]
    assert await store.approvals(chat("3")) == []


async def test_a_question_of_a_turn_is_decided_without_its_lane(store: Store) -> None:
    """A press may be heard by a process that does not run the turn."""
    claim, approval = await asked(store)
    await store.release(claim.lease)
    decision = await store.decide(approval, "denied", "u1", START, [])
    assert decision is not None
    assert decision.first
    journal = await store.journal(claim.item)
    assert journal is not None
    assert [each.state for each in journal.approvals] == ["denied"]


async def test_words_before_a_question_end_the_reply_that_streams(bench: Bench) -> None:
    store = await bench.open()
    claim = await claimed(store)
    await store.open_reply(claim.lease, claim.item, outbound("r1", text="", session_id="s1"))
    await store.note_streamed("r1", "platform-1")
    words = replace(outbound("r1", text="I would like to pay."), kind="remark")
    (row,) = await store.ask(claim.lease, question(claim), [words, shown()])
    assert (row.id, row.kind, row.text, row.platform_message_id) == ("r1", "remark", words.text, "platform-1")
    store = await bench.crash(store)
    journal = await store.journal(claim.item)
    assert journal is not None
    assert journal.reply is None
    again = await claimed_again(store)
    opened = await store.open_reply(again.lease, again.item, outbound("r2", text=""))
    assert opened.id == "r2"
    await finish(store, again)
    assert {row.id: row.state for row in await store.outbox(chat(), 9)} == {
        "r1": "sending",
        "q1": "pending",
        "r2": "refused",
    }


async def claimed_again(store: Store) -> Claim:
    """The item that an earlier process had."""
    async with asyncio.timeout(60):
        return await store.claim_next("w")
