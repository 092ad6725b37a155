"""Several chats that a person has alone with the bot: each has its lane and its sessions, all else is the person's."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from gateway.agent.caps import Caps, in_force
from gateway.agent.holding import SHELF
from gateway.commands.sessions import NAMED
from gateway.domain.chat import OWN, SessionKey
from gateway.domain.message import text_of
from gateway.store.port import under
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeModel, Gate, Live, Say, in_turn, running
from tests.support.model import newest

A, B = f"{OWN}one", f"{OWN}two"
WEEK = 7 * 86_400.0


def told(live: Live) -> str:
    """The last request of the model."""
    return "\n".join(text_of(each) for each in live.model.requests[-1].messages)


def test_all_of_them_count_against_the_persons_cap() -> None:
    chats = [SessionKey(platform="web", chat="anna", thread=thread) for thread in (None, A, B)]
    (accounts,) = {
        tuple(cap.account for cap in in_force(Caps(per_user_daily_usd=1.0), {}, each, None, "", 0.0)) for each in chats
    }
    assert accounts[0].startswith("person web/chat=anna ")


async def test_one_works_while_another_does(tmp_path: Path) -> None:
    gate = Gate()
    model = FakeModel(lambda spec, request: Say(text="done", gate=gate if "slow" in newest(request) else None))
    async with running(tmp_path, model=model) as live:
        slow = await live.tell("slow work", thread=A)
        await gate.until_waiting()
        assert await live.ask("and this?", thread=B) == "done"
        assert "slow work" not in told(live)
        await live.ask("/stop", thread=B)
        assert gate.waiting == 1
        gate.open()
        assert (await live.answer(slow)).to.thread == A


async def test_rules_hold_and_words_are_found_in_all_of_them(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("the heliotrope blooms in June", thread=A)
        await live.ask("hello", thread=B)
        await live.ask("/pin answer in verse", thread=A)
        await live.ask("go on", thread=B)
        assert "answer in verse" in told(live)
        await live.ask("a first word")
        assert "answer in verse" in told(live)
        assert "blooms in June" in await live.ask("/recall heliotrope", thread=B)
        assert "1. answer in verse" in await live.ask("/pin", thread=B)
        await live.ask("/unpin 1", thread=B)
        await live.ask("go on", thread=A)
        assert "answer in verse" not in told(live)
        assert "blooms" not in await live.ask("/recall heliotrope", chat="2", user="2")


async def test_everything_is_forgotten_in_all_of_them(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("the heliotrope blooms in June", thread=A)
        await live.ask("/pin answer in verse", thread=A)
        asks = await live.tell("/forget everything", thread=B)
        await live.adapter.until(lambda: any(row.kind == "question" for row in live.adapter.sent))
        await live.ask("/approve", thread=B)
        await live.answer(asks)
        await live.quiet()
        owner = live.adapter.inbound("x").source
        key = SessionKey(platform=owner.platform, chat=owner.chat)
        assert (await live.store.pins(key)).rules == ()
        assert await live.store.search("heliotrope", None, 9) == []
        assert [each for each in await live.store.own_sessions(key, 9) if each.message_count] == []


async def test_one_that_rested_for_a_week_goes_on_unasked(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        await live.ask("the train leaves at nine", thread=A)
        shown = len(live.adapter.sent)
        await clock.advance(WEEK + 1)
        await live.gateway.upkeep.expiry.sweep()
        await live.quiet()
        assert await live.tip(thread=A) is None
        assert len(live.adapter.sent) == shown, "its end is nobody's business"
        await live.ask("and back?", thread=A)
        assert "leaves at nine" in told(live)
        await live.ask("/new", thread=A)
        await live.ask("something else", thread=A)
        assert "leaves at nine" not in told(live)


async def test_reminders_are_listed_in_all_of_them_and_fire_where_they_were_made(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with running(tmp_path, clock=clock) as live:
        await live.ask("hello", thread=A)
        await live.ask("/remind in 5 min tea", thread=A)
        await live.ask("/remind in 6 min bread", thread=B)  # where nothing was said, so nobody would see it
        await live.ask("/remind in 7 min salt")
        listed = await live.ask("/reminders", thread=B)
        assert [each in listed for each in ("1. ", "tea", "2. ", "bread", "3. ", "salt")] == [True] * 6, listed
        await live.ask("/reminders cancel 3", thread=A)
        await live.advance_until(lambda: len(live.adapter.shown("c", "reminder")) == 2, seconds=30.0)
        fired = [row for row in live.adapter.sent if row.kind == "reminder"]
        assert [(row.to.thread, "tea" in row.text) for row in fired] == [(A, True), (None, False)]


async def test_a_reminder_of_a_chat_that_is_gone_fires_in_the_first(tmp_path: Path, clock: ManualClock) -> None:
    async with running(tmp_path, clock=clock) as live:
        await live.ask("hello", thread=A)
        await live.ask("hello", thread=B)
        await live.ask("/remind in 5 min tea", thread=A)
        await live.ask("/remind in 12000 min bread", thread=B)
        tip = await live.tip(thread=A)
        assert tip is not None
        assert "Forgot 2 messages" in await live.ask(f"/forget session {tip.id} yes", thread=A)
        await live.advance_until(lambda: len(live.adapter.shown("c", "reminder")) == 1, seconds=30.0)
        await clock.advance(WEEK + 1)
        await live.gateway.upkeep.expiry.sweep()
        await live.quiet()
        assert await live.tip(thread=B) is None
        await live.advance_until(lambda: len(live.adapter.shown("c", "reminder")) == 2, seconds=3600.0)
        fired = [row for row in live.adapter.sent if row.kind == "reminder"]
        assert [(row.to.thread, "tea" in row.text) for row in fired] == [(None, True), (None, False)]
        await live.ask("done")
        assert "bread" in told(live)


async def test_forgetting_names_the_other_chats_that_hold_the_words(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("my heliotrope blooms", thread=A)
        await live.ask("something else", thread=B)
        assert "You said the words in other chats, too: “my heliotrope blooms”" in (
            await live.ask("/forget heliotrope", thread=B)
        )
        listed = await live.ask("/forget heliotrope", thread=A)
        assert "1. " in listed
        assert "other chats" not in listed
        assert "not find a message from you" in await live.ask("/forget heliotrope", chat="2", user="2")
        for words in ("blooms my heliotrope", '"heliotrope blooms"', "heliotropes"):
            assert "You said the words in other chats" in await live.ask(f"/forget {words}", thread=B), words
        for number in range(30):
            await live.ask(f"heliotrope, heliotrope {number}", thread=B)
        assert "You said the words in other chats" in await live.ask("/forget heliotrope", thread=B)


async def test_forgetting_says_that_a_name_goes_that_was_given_to_another_chat(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("what about the heliotrope garden?", thread=A)
        await live.ask("hello", thread=B)
        tip = await live.tip(thread=B)
        assert tip is not None
        shelf = under(tip.key.owner, SHELF)
        await live.store.set_notes(shelf, {f"{NAMED}{tip.id}": "heliotrope plan", f"{NAMED}other": "tea"})
        listed = await live.ask("/forget heliotrope", thread=A)
        assert "1 chosen name." in listed
        assert "1 chosen name" in await _approve(live, "/forget all", A)
        assert dict(await live.store.notes(shelf)) == {f"{NAMED}other": "tea"}


async def test_they_work_on_the_same_files_and_each_takes_back_its_own_changes(tmp_path: Path) -> None:
    def writes(text: str) -> Say:
        return Say(calls=[("write_file", json.dumps({"path": f"{text}.txt", "content": text}))])

    answers = in_turn(writes("one"), Say(text="written"), writes("two"), Say(text="written"))
    async with running(tmp_path, model=FakeModel(answers)) as live:
        assert await live.ask("write one", thread=A) == "written"
        assert await live.ask("write two", thread=B) == "written"
        assert "2 files" in await live.ask("/files")
        assert "one.txt" in await live.ask("/files undo", thread=A)
        left = await live.ask("/files", thread=A)
        assert "two.txt" in left
        assert "one.txt" not in left
        assert "nothing to undo" in await live.ask("/files undo", thread=A)


async def _approve(live: Live, asked: str, thread: str) -> str:
    before = len(live.adapter.sent)
    asks = await live.tell(asked, thread=thread)
    await live.adapter.until(lambda: any(row.kind == "question" for row in live.adapter.sent[before:]))
    await live.ask("/approve", thread=thread)
    return (await live.answer(asks)).text


@pytest.mark.parametrize("order", ["/forget all", "/forget everything"])
async def test_a_forgotten_pin_holds_in_no_other_chat(tmp_path: Path, order: str) -> None:
    async with running(tmp_path) as live:
        await live.ask("my heliotrope blooms", thread=A)
        await live.ask("hello", thread=B)
        await live.ask("/pin water the heliotrope", thread=A)
        await live.ask("go on", thread=B)
        assert "water the heliotrope" in told(live)
        await live.ask("/forget heliotrope", thread=A)
        await _approve(live, order, A)
        tip = await live.tip(thread=B)
        assert tip is None or "heliotrope" not in tip.system_prompt
        await live.ask("go on", thread=B)
        assert "heliotrope" not in told(live)


async def test_a_forgotten_fact_is_told_in_no_other_chat(tmp_path: Path) -> None:
    fact = json.dumps({"action": "add", "about": "person", "text": "keeps a parrot named Pico"})
    async with running(tmp_path) as live:
        live.model.script = in_turn(Say(calls=[("memory", fact)]), *[Say(text="well") for _ in range(3)])
        await live.ask("I have Pico, a parrot", thread=A)
        await live.ask("hello", thread=B)
        assert "Pico" in told(live)
        assert "Forgotten" in await live.ask("/memory forget 1", thread=A)
        await live.ask("go on", thread=B)
        assert "Pico" not in told(live)


async def test_a_rule_holds_in_chats_of_other_processes(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("hello", thread=A)
        await live.ask("hello", thread=B)
        sessions = live.gateway.agents.sessions
        known = dict(sessions._followed)  # of a process that runs only B
        await live.ask("/pin answer in verse", thread=A)
        sessions._followed = known
        await live.ask("go on", thread=B)
        assert "answer in verse" in told(live)
        tip = await live.tip(thread=B)
        assert tip is not None
        assert tip.last_prompt_tokens > 0


async def test_two_chats_pin_at_once_and_both_pins_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as live:
        await live.ask("hello", thread=A)
        await live.ask("hello", thread=B)
        store, both, came = type(live.store), asyncio.Event(), list[Any]()
        plain = store.set_pins

        async def set_pins(self: Any, *given: Any) -> Any:
            came.append(given)
            if len(came) == 2:
                both.set()
            await both.wait()
            return await plain(self, *given)

        monkeypatch.setattr(store, "set_pins", set_pins)
        one = await live.tell("/pin use metres", thread=A)
        two = await live.tell("/pin answer in verse", thread=B)
        assert {(await live.answer(each)).text[:16] for each in (one, two)} == {"Pinned as number"}
        assert await _pinned(live) == ["answer in verse", "use metres"]
        for thread in (A, B):
            await live.ask("go on", thread=thread)
            assert ["answer in verse" in told(live), "use metres" in told(live)] == [True, True]


async def test_forgetting_that_waits_for_a_yes_keeps_the_pins_of_other_chats(tmp_path: Path) -> None:
    async with running(tmp_path) as live:
        await live.ask("my heliotrope blooms", thread=A)
        await live.ask("/pin water the heliotrope", thread=A)
        await live.ask("hello", thread=B)
        await live.ask("/forget heliotrope", thread=A)
        asks = await live.tell("/forget all", thread=A)
        await live.adapter.until(lambda: any(row.kind == "question" for row in live.adapter.sent))
        await live.ask("/pin answer in verse", thread=B)
        await live.ask("/approve", thread=A)
        await live.answer(asks)
        assert await _pinned(live) == ["answer in verse"]
        await live.ask("go on", thread=A)
        assert "answer in verse" in told(live)


async def _pinned(live: Live) -> list[str]:
    owner = live.adapter.inbound("x").source
    pins = await live.store.pins(SessionKey(platform=owner.platform, chat=owner.chat))
    return sorted(each.text for each in pins.rules)
