"""Replies that grow as Telegram's drafts, where that was chosen: the real library, the emulator, the whole gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.emulators.telegram import Flood, LoseAnswer, Refuse, TelegramServer
from tests.support.fast_clock import FastClock
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.telegram_live import Bot, on_telegram

LONG = "The beginning of an answer, "
WHOLE = LONG + "and its end."
NO_METHOD = Refuse(status=404, body='{"ok":false,"error_code":404,"description":"Not Found: method not found"}')
NOT_THERE = Refuse(status=400, body='{"ok":false,"error_code":400,"description":"Bad Request: TEXTDRAFT_PEER_INVALID"}')


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """Telegram without its limits."""
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


def slow(*gates: Gate, first: str = LONG, text: str = "and its end.") -> FakeModel:
    """A model that waits in the middle of each answer."""
    return FakeModel(in_turn(*(Say(text=text, first=first, gate=gate) for gate in gates)))


def calls(telegram: TelegramServer, method: str) -> int:
    return len(list(telegram.journal.of(method)))


async def test_a_reply_grows_as_a_draft_and_ends_as_one_message(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    model = slow(gate, first="The *beginning* of an answer, ")
    async with on_telegram(tmp_path, telegram, anna, model=model, streaming="drafts") as bot:
        bot.says("tell me")
        await bot.until(lambda: bot.drafted() == LONG.rstrip())
        assert bot.shown() == []
        assert telegram.cloud.drafts(bot.chat)[None].entities[0]["type"] == "italic"
        gate.open()
        await bot.until_shown(WHOLE)
        await bot.quiet()
        assert (bot.drafted(), calls(telegram, "sendMessage"), calls(telegram, "editMessageText")) == (None, 1, 0)
        assert telegram.violations == []


async def test_a_command_is_answered_while_a_reply_is_drafted(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    async with on_telegram(tmp_path, telegram, anna, model=slow(gate), streaming="drafts") as bot:
        bot.says("tell me")
        await bot.until(bot.drafted)
        bot.says("/status")
        await bot.until(lambda: bot.shown())
        assert bot.drafted() is None  # as Telegram's clients do it
        gate.open()
        await bot.until(lambda: bot.shown()[1:] == [WHOLE])


async def test_a_topic_of_a_private_chat_has_its_own_draft(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    async with on_telegram(tmp_path, telegram, anna, model=slow(gate), streaming="drafts") as bot:
        topic = telegram.people.topic(bot.chat, anna, "Plans")
        bot.says("tell me", topic=topic)
        await bot.until(lambda: bot.drafted(topic))
        gate.open()
        await bot.until_shown(WHOLE)
        assert [message.topic for message in telegram.shown(bot.chat)] == [topic]
        assert bot.drafted(topic) is None


async def test_in_a_group_replies_grow_by_edits(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    group = telegram.people.group("Team", anna, bot="administrator")
    async with on_telegram(tmp_path, telegram, anna, model=slow(gate), streaming="drafts") as bot:
        bot.says(f"@{telegram.bot.username} tell us", group)
        await bot.until_shown(LONG.rstrip() + " …", chat=group)
        gate.open()
        await bot.until_shown(WHOLE, chat=group)
        assert calls(telegram, "sendMessageDraft") == 0


async def test_a_server_without_drafts_is_asked_once_and_the_same_reply_goes_on_by_edits(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, bob, first, second = telegram.people.person("Anna"), telegram.people.person("Bob"), Gate(), Gate()
    telegram.faults.add(NO_METHOD, method="sendMessageDraft")
    allow = (f"telegram:{bob.id}",)
    async with on_telegram(tmp_path, telegram, anna, model=slow(first, second), streaming="drafts", allow=allow) as bot:
        await _grows_by_edits(bot, first)
        chat = telegram.people.private(bob)
        telegram.people.say(chat, bob, "and me?")
        await bot.until_shown(LONG.rstrip() + " …", chat=chat)
        second.open()
        await bot.until_shown(WHOLE, chat=chat)
        assert calls(telegram, "sendMessageDraft") == 1


async def test_a_chat_that_is_refused_drafts_has_edits_and_the_others_have_drafts(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, bob, gates = telegram.people.person("Anna"), telegram.people.person("Bob"), [Gate() for _ in range(3)]
    telegram.faults.add(NOT_THERE, method="sendMessageDraft", chat_id=anna.id)
    allow = (f"telegram:{bob.id}",)
    async with on_telegram(tmp_path, telegram, anna, model=slow(*gates), streaming="drafts", allow=allow) as bot:
        await _grows_by_edits(bot, gates[0])
        chat = telegram.people.private(bob)
        telegram.people.say(chat, bob, "and me?")
        await bot.until(lambda: telegram.cloud.drafts(chat))
        gates[1].open()
        await bot.until_shown(WHOLE, chat=chat)
        bot.says("again")
        await bot.until(lambda: bot.shown() == [WHOLE, LONG.rstrip() + " …"])
        gates[2].open()
        await bot.until_shown(WHOLE, WHOLE)
        assert len(list(telegram.journal.of("sendMessageDraft", anna.id))) == 1


async def _grows_by_edits(bot: Bot, gate: Gate) -> None:
    bot.says("tell me")
    await bot.until_shown(LONG.rstrip() + " …")
    gate.open()
    await bot.until_shown(WHOLE)
    assert bot.drafted() is None


@pytest.mark.parametrize("paced", [True, False])
async def test_silence_that_a_draft_is_asked_for_is_kept_by_all_and_then_the_reply_is_seen(
    tmp_path: Path, telegram: TelegramServer, paced: bool
) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    telegram.faults.add(Flood(seconds=2), method="sendMessageDraft")
    async with on_telegram(tmp_path, telegram, anna, model=slow(gate), streaming="drafts", paced=paced) as bot:
        bot.says("tell me")
        await bot.until(lambda: [call for call in telegram.journal.of("sendMessageDraft") if call.status == 429])
        bot.says("/status")
        gate.open()
        await bot.until(lambda: WHOLE in bot.shown())
        await bot.quiet()
        assert len(bot.shown()) == 2
        assert telegram.violations == []


async def test_a_draft_goes_on_when_the_silence_is_over(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    telegram.faults.add(Flood(seconds=1), method="sendMessageDraft")
    async with on_telegram(tmp_path, telegram, anna, model=slow(gate), streaming="drafts", paced=True) as bot:
        bot.says("tell me")
        await bot.until(bot.drafted)
        assert telegram.violations == []
        gate.open()
        await bot.until_shown(WHOLE)


async def test_a_draft_whose_answer_is_lost_holds_the_reply_up_for_a_moment_only(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    telegram.faults.add(LoseAnswer(), method="sendMessageDraft")
    model = slow(gate)
    async with on_telegram(tmp_path, telegram, anna, model=model, streaming="drafts", patience=300.0) as bot:
        bot.says("tell me")
        await bot.until(bot.drafted)
        gate.open()
        await bot.until_shown(WHOLE)  # which fails long before the patience is over


async def test_a_turn_that_is_stopped_leaves_a_message_of_what_was_drafted(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    async with on_telegram(tmp_path, telegram, anna, model=slow(gate), streaming="drafts") as bot:
        bot.says("tell me")
        await bot.until(bot.drafted)
        bot.says("/stop")
        await bot.until(lambda: len(bot.shown()) == 3)
        await bot.quiet()
        assert [text.strip() for text in bot.shown()].count(LONG.strip()) == 1
        assert bot.drafted() is None


@pytest.mark.parametrize("again", ["drafts", "edits", "none"])
async def test_a_reply_that_a_crash_cut_is_shown_once(tmp_path: Path, telegram: TelegramServer, again: str) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    async with on_telegram(tmp_path, telegram, anna, model=slow(gate), streaming="drafts") as bot:
        bot.says("tell me")
        await bot.until(bot.drafted)
        await bot.gateway.lanes.stop(0)  # as good as a crash: the turn does not end
    async with on_telegram(tmp_path, telegram, anna, streaming=again) as bot:  # type: ignore[arg-type]
        await bot.until_shown("echo: tell me")
        await bot.quiet()
        assert (bot.shown(), bot.drafted()) == (["echo: tell me"], None)


@pytest.mark.parametrize("again", ["drafts", "none"])
async def test_a_message_that_a_crash_left_unfinished_is_finished_whatever_is_chosen_now(
    tmp_path: Path, telegram: TelegramServer, again: str
) -> None:
    anna, gate, second = telegram.people.person("Anna"), Gate(), Gate()
    async with on_telegram(tmp_path, telegram, anna, model=slow(gate)) as bot:
        bot.says("tell me")
        await bot.until_shown(LONG.rstrip() + " …")
        await bot.gateway.lanes.stop(0)
    model = slow(second, first="Anew, ")
    async with on_telegram(tmp_path, telegram, anna, model=model, streaming=again) as bot:  # type: ignore[arg-type]
        await second.until_waiting()
        if again == "drafts":
            await bot.until_shown("Anew, …")
        second.open()
        await bot.until_shown("Anew, and its end.")
        assert calls(telegram, "sendMessageDraft") == 0


async def test_nothing_may_be_shown_of_a_reply_before_it_is_finished(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    async with on_telegram(tmp_path, telegram, anna, model=slow(gate), streaming="none") as bot:
        bot.says("tell me")
        await gate.until_waiting()
        known = calls(telegram, "sendChatAction")
        await bot.until(lambda: calls(telegram, "sendChatAction") >= known + 1)  # seconds go by
        assert (bot.shown(), bot.drafted()) == ([], None)
        gate.open()
        await bot.until_shown(WHOLE)
        assert (calls(telegram, "sendMessage"), calls(telegram, "editMessageText")) == (1, 0)
