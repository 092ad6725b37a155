"""The contract of forgetting: what goes is nowhere afterwards, and everything else is as it was."""

from __future__ import annotations

from contextlib import aclosing, closing
from pathlib import Path
from typing import Any

import pytest

from gateway.domain.chat import KeptFile
from gateway.domain.message import Message, assistant, note_of, tool_result, user
from gateway.domain.rule import Pin, Pins
from gateway.domain.session import Compaction, Session, Todo
from gateway.domain.usage import CanonicalUsage, LedgerEntry
from gateway.runtime.errors import SessionConflict
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Claim, Erasure, Forgetting, Opening, Rebuilt, Replacement, Rewriting, Talk
from gateway.store.shared import searchable
from gateway.store.sqlite import connection
from tests.support.remains import in_files, left_in_the_end, remains
from tests.support.store_kit import (
    START,
    Bench,
    arrival,
    claimed,
    contents,
    exchange,
    finish,
    in_session,
    key,
    moved,
    new_session,
    nothing_ready,
    outbound,
    put,
    reminder,
    step,
    transcript,
    turns_of,
)
from tests.support.stores import SqliteBench

pytest_plugins = ["tests.support.stores"]

WORD = "quizzaciously"


def rewriting(session: Session, **changes: Any) -> Rewriting:
    facts: dict[str, Any] = {"freed": 0, "title": None, "todos": ()}
    return Rewriting(session_id=session.id, **{**facts, **changes})


def deed(tip: Session | None, *removed: Message, **changes: Any) -> Forgetting:
    facts: dict[str, Any] = {
        "id": "d1",
        "key": key(),
        "at": START,
        "item": None,
        "tip": tip and tip.ref,
        "removed": tuple(note_of(message)["id"] for message in removed),
        "counts": {"messages": len(removed)},
    }
    return Forgetting(**{**facts, **changes})


async def secret_told(store: Store) -> tuple[Claim, Session, list[Message]]:
    """A conversation of three exchanges, of which the second holds the word."""
    told = (user(f"my secret is {WORD}", tokens=5), assistant(f"{WORD}, noted", tokens=6))
    claim, session = await in_session(store, *exchange(1), *told, *exchange(3))
    return claim, session, await transcript(store, session.id)


async def test_messages_leave_transcript_index_and_files(bench: Bench) -> None:
    store = await bench.open()
    claim, session, said = await secret_told(store)
    assert len(turns_of(await store.search(WORD, key(), 5)))
    counts = await store.forget(claim.lease, deed(session, *said[2:4], sessions=(rewriting(session, freed=11),)))
    assert counts == {"messages": 2}
    assert contents(await transcript(store, session.id)) == ["question 1", "answer 1", "question 3", "answer 3"]
    now = await store.session(session.id)
    assert (now.message_count, now.transcript_tokens) == (4, session.transcript_tokens - 11)
    assert (now.epoch, now.rewritten) == (session.epoch + 1, 1)
    assert await store.search(WORD, key(), 5) == []
    assert len(turns_of(await store.search("question 3", key(), 5)))
    assert await remains(bench, WORD, WORD[2:]) == []
    store = await bench.crash(store)
    assert contents(await transcript(store, session.id)) == ["question 1", "answer 1", "question 3", "answer 3"]
    assert await store.forgotten(key(), "d1") == {"messages": 2}


async def test_what_is_left_is_found_among_its_new_neighbours(store: Store) -> None:
    claim, session, said = await secret_told(store)
    before = note_of(said[1])["id"]
    assert contents([each.message for each in await store.around(key(), before, 2)]) == contents(said[:4])
    await store.forget(claim.lease, deed(session, *said[2:4], sessions=(rewriting(session),)))
    left = [*said[:2], *said[4:]]
    assert contents([each.message for each in await store.around(key(), before, 2)]) == contents(left)
    (passage,) = await store.search("answer 1", key(), 1)
    assert contents([each.message for each in passage.turns]) == contents(left)


async def test_a_backup_of_a_file_puts_the_scrubbing_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "BUSY_MS", 1)
    bench = SqliteBench(tmp_path)
    async with aclosing(bench):
        store = await bench.open()
        claim, session, said = await secret_told(store)
        with closing(connection.connect_reader(bench.path)) as backup:
            backup.execute("BEGIN")
            backup.execute("SELECT count(*) FROM messages").fetchall()
            await store.forget(claim.lease, deed(session, *said[2:4], sessions=(rewriting(session),)))
            await bench.clock.advance(61)
            assert await remains(bench, WORD)
        await bench.clock.advance(61)
        files = [bench.path, bench.path.with_name(f"{bench.path.name}-wal")]
        assert await left_in_the_end(lambda: in_files(files, WORD)) == []


async def test_a_deed_is_done_once(bench: Bench) -> None:
    store = await bench.open()
    claim, session, said = await secret_told(store)
    asked = deed(session, *said[2:4], sessions=(rewriting(session),))
    assert await store.forgotten(key(), "d1") is None
    await store.forget(claim.lease, asked)
    assert await store.forget(claim.lease, replace(asked, counts={"messages": 77})) == {"messages": 2}
    assert (await store.session(session.id)).rewritten == 1


async def test_nothing_goes_if_the_conversation_moved_meanwhile(store: Store) -> None:
    claim, session, said = await secret_told(store)
    for tip in (replace(session, epoch=moved(session.ref).epoch), None, replace(session, id="other")):
        with pytest.raises(SessionConflict):
            await store.forget(claim.lease, deed(tip, *said[2:4]))
    with pytest.raises(SessionConflict):
        await store.forget(replace(claim.lease, fence=claim.lease.fence - 1), deed(session, *said[2:4]))
    assert len(await transcript(store, session.id)) == 6
    assert await store.forgotten(key(), "d1") is None
    assert {*contents(said[2:4])} <= {*contents(turns_of(await store.search(WORD, key(), 5)))}


async def test_a_summary_that_did_not_go_is_not_found_either(store: Store) -> None:
    claim, session = await in_session(store, user(f"notes: {WORD}", summary=True), *exchange(1))
    (summary, *_) = await transcript(store, session.id)
    with pytest.raises(SessionConflict):
        await store.forget(claim.lease, deed(None, summary))
    assert await store.search(WORD, key(), 5) == []


async def test_who_appends_to_what_it_was_is_refused(store: Store) -> None:
    claim, session, said = await secret_told(store)
    await store.forget(None, deed(session, *said[2:4], sessions=(rewriting(session),)))
    with pytest.raises(SessionConflict):
        await store.record_step(claim.lease, session.ref, claim.item, step(*exchange(4)))


async def test_a_summary_is_replaced_in_every_session_that_holds_it(bench: Bench) -> None:
    store = await bench.open()
    claim, parent, said = await secret_told(store)
    summary = user(f"notes: {WORD}", tokens=9, summary=True, derived_from=[note_of(m)["id"] for m in said[:4]])
    child = new_session("s2", parent_id="s1", started_at=START + 1)
    compaction = Compaction(
        at=START + 1,
        parent_id="s1",
        child_id="s2",
        trigger="manual",
        messages_before=6,
        messages_after=3,
        tokens_before=20,
        tokens_after=16,
        focus=WORD,
        error=f"{WORD} failed",
    )
    opening = Opening(session=child, transcript=[summary, *said[4:]])
    child = await store.continue_session(claim.lease, parent.ref, opening, 6, compaction)
    (old, *_) = await transcript(store, "s2")
    branch = new_session("s3", parent_id="s2", started_at=START + 2)
    branch_opening = Opening(session=branch, transcript=await transcript(store, "s2"))
    opened = await store.end_session(claim.lease, child.ref, "switched", START + 2, branch_opening)
    assert opened is not None
    ids = [note_of(message)["id"] for message in said]
    made = user("notes: a question", tokens=4, summary=True, fallback=True, derived_from=ids[:2])
    await store.forget(
        claim.lease,
        deed(
            opened,
            *said[2:4],
            replaced=(Replacement(old=note_of(old)["id"], message=made, session_id="s2"),),
            sessions=(rewriting(parent, freed=11), rewriting(child, freed=5), rewriting(opened, freed=5)),
        ),
    )
    for session_id in ("s2", "s3"):
        (new, *rest) = await transcript(store, session_id)
        assert contents([new, *rest]) == ["notes: a question", "question 3", "answer 3"]
        assert note_of(new)["derived_from"] == ids[:2]
        assert (await store.session(session_id)).transcript_tokens == opened.transcript_tokens - 5
    (kept,) = await store.compactions("s1")
    assert kept == replace(compaction, focus=None, error=None)
    assert await remains(bench, WORD) == []


async def test_words_beside_the_transcript_go_too(bench: Bench) -> None:
    store = await bench.open()
    await store.accept([arrival("early", text=f"say {WORD}")], cap=9)
    early = await store.claim_next("w")
    await finish(store, early, outbound("o1", text=f"{WORD}!"), outbound("o2", text=f"{WORD} again"))
    await store.mark_sent("o1", "p1")
    claim, session = await in_session(store, *exchange(1))
    rule = Pins(rules=(Pin(text=f"never {WORD}", at=START),), set_by="1")
    await store.set_pins(claim.lease, rule, _prompt(session, f"be {WORD}"))
    tip = await store.tip(key())
    assert tip is not None
    tip = await store.update_session(claim.lease, tip.ref, title=WORD, engine_state={"note": WORD})
    await store.record_step(claim.lease, tip.ref, claim.item, step(todos=(Todo(text=WORD),)))
    await store.keep_file(key(), _file("f1"), f"a file about {WORD}".encode())
    await store.keep_file(key(), _file("f2", "d2"), b"another")
    for reminded in (reminder("r1", text=f"say {WORD}"), reminder("r2")):
        assert await store.add_reminder(reminded, 9, 10_000) is not None
    cleared = rewriting(tip, todos=(Todo(text="tea"),))
    await store.forget(claim.lease, deed(tip, sessions=(cleared,), rules=rule.rules, files=("f1",), reminders=("r1",)))
    assert [each.id for each in await store.reminders(key(), 9)] == ["r2"]
    assert [each.id for each in await store.due_reminders(START, 9)] == ["r2"]
    added = [await store.add_reminder(reminder(each), 2, 10_000) for each in ("r3", "r4")]
    assert [each is not None for each in added] == [True, False]  # what is forgotten is not counted any more
    now = await store.tip(key())
    assert now is not None
    assert (now.title, now.todos, now.system_prompt, dict(now.engine_state)) == (
        None,
        (Todo(text="tea"),),
        "",
        {},
    )
    assert await store.pins(key()) == Pins(set_by="1")
    assert [file.ref for file in await store.kept_files(key(), 9)] == ["f2"]
    assert await store.file_content(key(), "d1") is None
    assert await store.file_content(key(), "d2") == b"another"
    assert {row.id: (row.state, row.text) for row in await store.outbox(None, 9)} == {
        "o1": ("sent", ""),
        "o2": ("refused", ""),
    }
    assert await remains(bench, WORD) == []
    # The event stays known.
    assert [receipt.status for receipt in await put(store, "early")] == ["duplicate"]


async def test_the_message_that_asked_loses_its_words_and_can_be_tried_again(bench: Bench) -> None:
    store = await bench.open()
    await store.accept([arrival("e1", text=f"/forget {WORD}")], cap=9)
    claim = await store.claim_next("w")
    question = outbound("question", text="Really?", answers="e1")
    (asked,) = await store.emit([question, outbound("chosen", text="Yes.", edits="question")])
    await store.forget(claim.lease, deed(None, item=claim.item.id))
    assert await remains(bench, WORD) == []
    chosen = await store.mark_sent(asked.id, "p1")
    assert chosen is not None
    assert (chosen.text, chosen.platform_message_id) == ("Yes.", "p1"), "the question changes though it was on its way"
    await store.mark_sent(chosen.id, "p1")
    store = await bench.crash(store)
    again = await store.claim_next("w")
    assert (again.item.id, again.item.inbound.text) == (claim.item.id, "/forget")
    assert again.item.inbound.source == claim.item.inbound.source
    await finish(store, again, outbound("done", text="Forgot it."))


async def test_what_waits_to_be_shown_elsewhere_in_the_chat_is_shown(store: Store) -> None:
    claim = await claimed(store)
    await store.emit([outbound("o1", text=WORD)])
    await store.forget(claim.lease, deed(None))
    (row,) = await store.emit([outbound("o2")])
    assert (row.id, row.state) == ("o2", "sending")


async def test_other_keys_keep_everything(bench: Bench) -> None:
    store = await bench.open()
    await in_session(store, user(f"mine is {WORD}"), chat="2", session_id="other")
    claim, session, said = await secret_told(store)
    await store.forget(claim.lease, deed(session, *said[2:4], sessions=(rewriting(session),)))
    assert contents(await transcript(store, "other")) == [f"mine is {WORD}"]
    assert len(turns_of(await store.search(WORD, key("2"), 5))) == 1


async def test_calls_go_with_their_results(store: Store) -> None:
    call: Any = {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}
    claim, session = await in_session(
        store, *exchange(1), user("what time?"), assistant(None, [call]), tool_result("c1", "noon"), assistant("noon")
    )
    said = await transcript(store, session.id)
    await store.forget(claim.lease, deed(session, *said[2:], sessions=(rewriting(session),)))
    assert contents(await transcript(store, session.id)) == ["question 1", "answer 1"]


async def test_terms_that_an_earlier_legato_chose_go_too(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = [f"{number}" for number in range(70_000, 70_150)]
    call: Any = {"id": "c1", "type": "function", "function": {"name": "list", "arguments": "{}"}}
    result = tool_result("c1", " ".join([*numbers, "in getKestrelPort"]))
    store = await bench.open()
    with monkeypatch.context() as earlier:
        earlier.setattr(searchable, "RESULT_NUMBERS", 200)
        claim, session = await in_session(store, *exchange(1), user("list"), assistant(None, [call]), result)
        assert len(turns_of(await store.search("70074", key(), 5)))
    said = await transcript(store, session.id)
    await store.forget(claim.lease, deed(session, *said[2:], sessions=(rewriting(session),)))
    assert await store.search("70074", key(), 5) == []
    assert await remains(bench, "70074", "70001", "kestrel") == []


def _prompt(session: Session, text: str) -> Rebuilt:
    return Rebuilt(ref=session.ref, system_prompt=text, last_prompt_tokens=0)


def _file(ref: str, digest: str = "d1") -> KeptFile:
    return KeptFile(ref=ref, digest=digest, name=f"{ref}.txt", mime="text/plain", size=1, at=START)


# -- everything of a key ----------------------------------------------------------------------


def erasure(**changes: Any) -> Erasure:
    facts: dict[str, Any] = {"id": "e1", "key": key(), "at": START}
    return Erasure(**{**facts, **changes})


async def a_life(store: Store) -> tuple[Claim, Session]:
    """A conversation with everything that there can be, and the lane of its next item."""
    await store.accept([arrival("early", text=f"say {WORD}")], cap=9)
    early = await store.claim_next("w")
    await finish(store, early, outbound("o1", text=f"{WORD}!"), outbound("o2", text=f"{WORD} again"))
    await store.mark_sent("o1", "p1")
    claim, first = await in_session(store, *exchange(1), user(f"{WORD} was said"))
    await store.charge(first, [_call(first)])
    await store.set_pins(claim.lease, Pins(rules=(Pin(text=f"never {WORD}", at=START),)), _prompt(first, WORD))
    await store.keep_file(key(), _file("f1"), f"a file about {WORD}".encode())
    await store.add_reminder(reminder("r1", text=f"say {WORD}"), 9, 10_000)
    tip = await store.tip(key())
    assert tip is not None
    opening = Opening(session=new_session("s2"), transcript=await transcript(store, "s1"))
    second = await store.end_session(claim.lease, tip.ref, "switched", START, opening)
    assert second is not None
    return claim, second


async def test_everything_of_a_key_goes_and_nothing_of_others(bench: Bench) -> None:
    store = await bench.open()
    claim, _ = await a_life(store)
    await store.accept([arrival("theirs", chat="2", text="mine")], cap=9)
    counts = await store.erase(claim.lease, erasure(item=claim.item.id))
    heard = await store.heard(key(), 10)
    assert "unreadable" not in [item.inbound.kind for item in heard], "what was erased is no damage"
    assert WORD not in str(heard)
    assert counts == {"sessions": 2, "messages": 3, "files": 1, "rules": 1}
    assert await store.tip(key()) is None
    assert await store.sessions(key(), 9) == []
    assert await store.search(WORD, None, 9) == []
    assert await store.pins(key()) == Pins()
    assert await store.kept_files(key(), 9) == []
    assert await store.outbox(None, 9) == []
    assert await store.pending_hooks(9) == []
    assert await store.reminders(key(), 9) == []
    assert await store.due_reminders(START, 9) == []
    assert (await store.status()).sessions == 0
    assert await remains(bench, WORD) == []
    assert await store.erase(claim.lease, erasure(item=claim.item.id)) == counts
    assert await store.forgotten(key(), "e1") == counts
    # What was spent is still known, but nobody's.
    (total,) = await store.usage(0, "model")
    assert total.calls == 1
    assert await store.usage(0, "model", key=key()) == []
    # The item goes on, its event stays known, and a new conversation begins.
    assert [receipt.status for receipt in await put(store, "early")] == ["duplicate"]
    opened = await store.open_session(claim.lease, Opening(session=new_session("s3"), transcript=[user("hello")]))
    await finish(store, claim, outbound("o9", text="Forgot it."))
    assert contents(await transcript(store, opened.id)) == ["hello"]
    other = await store.claim_next("w")
    assert other.item.inbound.text == "mine"


async def test_only_what_is_older_goes(bench: Bench) -> None:
    store = await bench.open()
    claim, _ = await a_life(store)
    tip = await store.tip(key())
    assert tip is not None
    await store.record_step(claim.lease, tip.ref, claim.item, step(user("new"), at=START + 500))
    await store.keep_file(key(), replace(_file("f2", "d2"), at=START + 500), b"new")
    counts = await store.erase(None, erasure(before=START + 100))
    assert counts == {"sessions": 1, "messages": 0, "files": 1}
    assert [session.id for session in await store.sessions(key(), 9)] == ["s2"]
    assert contents(await transcript(store, "s2")) == ["question 1", "answer 1", f"{WORD} was said", "new"]
    (found, *_) = await store.search(WORD, key(), 9)
    assert found.hit.session_id == "s2"
    assert [file.ref for file in await store.kept_files(key(), 9)] == ["f2"]
    assert len((await store.pins(key())).rules) == 1


async def test_without_the_lane_its_items_end_and_whoever_runs_it_is_shut_out(bench: Bench) -> None:
    store = await bench.open()
    claim, second = await a_life(store)
    await put(store, "waits")
    assert (await store.erase(None, erasure()))["sessions"] == 2
    with pytest.raises(SessionConflict):
        await store.record_step(claim.lease, second.ref, claim.item, step(user("late")))
    assert (await store.status()).waiting == 0
    store = await bench.crash(store)
    assert await nothing_ready(store)
    await put(store, "next")
    assert (await store.claim_next("w")).item.inbound.event_id == "next"


async def test_where_a_person_spoke_is_known_also_after_forgetting(store: Store) -> None:
    claim, session = await in_session(store, *exchange(1))
    await put(store, "g", chat="2")
    await store.forget(claim.lease, deed(session, item=claim.item.id))
    assert await store.talks("test", "u1") == [Talk(key=key(), chat_type="direct")]
    assert await store.talks("test", "nobody") == []
    assert await store.talks("other", "u1") == []
    assert [talk.key for talk in await store.talks(None, None)] == [key(), key("2")]


def _call(session: Session) -> LedgerEntry:
    usage = CanonicalUsage(input_tokens=1)
    return LedgerEntry(at=START, purpose="turn", provider="p", model="m", usage=usage, cost_usd=0.5)
