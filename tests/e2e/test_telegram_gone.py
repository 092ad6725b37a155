"""Chats that are gone: blocked, thrown out, deleted. Nobody calls there until somebody writes again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.commands.turn import NOT_SHOWN
from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from tests.emulators.telegram import Chat, TelegramServer
from tests.support.fast_clock import FastClock
from tests.support.model import FakeModel, Gate, Say, in_turn
from tests.support.telegram_live import Bot, on_telegram
from tests.support.waiting import eventually


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    """Telegram without its limits."""
    async with TelegramServer(limits=None, clock=FastClock()) as server:
        yield server


def calls(telegram: TelegramServer, chat: Chat) -> int:
    """Return the number of calls to a chat."""
    return sum(call.chat_id == str(chat.id) for call in telegram.journal.calls)


def address(chat: Chat) -> ChatAddress:
    """Return the address of the whole chat."""
    return ChatAddress(platform="telegram", chat=str(chat.id))


async def told(bot: Bot, chat: Chat, text: str) -> Outbound:
    """Let the gateway send a notice of its own, and return the notice's end."""
    key = SessionKey(platform="telegram", chat=str(chat.id))
    await bot.gateway.outbox.emit(bot.gateway.outbox.compose(key, address(chat), "notice", text))
    await bot.quiet()
    return (await bot.gateway.store.outbox(address(chat), 1))[0]


async def test_who_blocks_the_bot_is_not_called_and_gets_answers_again_after_a_message(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna, gate = telegram.people.person("Anna"), Gate()
    answers = in_turn(Say(text="one", gate=gate), Say(text="two"), Say(text="three"), Say(text="four"))
    async with on_telegram(tmp_path, telegram, anna, model=FakeModel(answers)) as bot:
        for text in ("one", "two", "three"):
            bot.says(text)
        await gate.until_waiting()
        telegram.people.block(anna)
        await eventually(lambda: bot.gateway.store.closed(address(bot.chat)))
        await eventually(lambda: not bot.gateway.outbox.in_flight)  # a notice may be on its way
        before = calls(telegram, bot.chat)
        gate.open()
        await bot.quiet()
        assert calls(telegram, bot.chat) <= before + 1  # the sign of typing was on its way, maybe; no answer was
        assert {"one", "two", "three"}.isdisjoint(bot.shown())
        row = await told(bot, bot.chat, "your session ended")
        # A notice that was on its way may hear of it before the update is read.
        whys = ("the person has blocked the bot", "Forbidden: bot was blocked by the user")
        assert row.state == "refused"
        assert row.error in whys
        telegram.people.unblock(anna)
        await eventually(lambda: _is_open(bot, bot.chat))
        waiting = "I could not show 3 answers here. /last shows them."
        await bot.until_shown(waiting)
        assert (await told(bot, bot.chat, "welcome back")).state == "sent"
        bot.says("four")
        await bot.until_shown(waiting, "welcome back", "four")
        bot.says("/last")
        await bot.until_shown(waiting, "welcome back", "four", NOT_SHOWN, "one", "two", "three")
    assert telegram.violations == []


async def _is_open(bot: Bot, chat: Chat) -> bool:
    return await bot.gateway.store.closed(address(chat)) is None


async def test_a_chat_that_vanished_unseen_is_tried_once_also_over_a_restart_until_it_writes(
    tmp_path: Path, telegram: TelegramServer
) -> None:
    anna = telegram.people.person("Anna")
    group = telegram.people.group("Team", anna, kind="supergroup")
    name = f"@{telegram.bot.username}"
    async with on_telegram(tmp_path, telegram, anna) as bot:
        bot.says(f"hello {name}", group)
        await bot.until_shown("echo: hello", chat=group)
        group.members[telegram.bot.id] = "kicked"  # and the update about it is lost
        before = calls(telegram, group)
        assert (await told(bot, group, "tried")).state == "refused"
        assert calls(telegram, group) == before + 1
        row = await told(bot, group, "not tried")
        assert (row.state, row.error) == ("refused", "Forbidden: bot was kicked from the supergroup chat")
        bot.says("hello")  # others are none the worse
        await bot.until_shown("echo: hello")
    async with on_telegram(tmp_path, telegram, anna) as bot:
        assert (await told(bot, group, "still not tried")).state == "refused"
        assert calls(telegram, group) == before + 1
        group.members[telegram.bot.id] = "member"
        bot.says(f"back {name}", group)
        await bot.until_shown("echo: hello", "echo: back", chat=group)
    assert telegram.violations == []


async def test_what_strangers_do_with_the_bot_is_not_kept(tmp_path: Path, telegram: TelegramServer) -> None:
    anna, bob = telegram.people.person("Anna"), telegram.people.person("Bob")
    group = telegram.people.group("Team", anna, bob)
    async with on_telegram(tmp_path, telegram, anna) as bot:
        telegram.people.block(bob)
        telegram.people.kick_bot(group, bob)
        bot.says("hello")
        await bot.until_shown("echo: hello")
        assert await _is_open(bot, telegram.people.private(bob))
        assert await _is_open(bot, group)
        telegram.people.add_bot(group, anna)
        telegram.people.kick_bot(group, anna)
        await eventually(lambda: bot.gateway.store.closed(address(group)))
        telegram.people.add_bot(group, bob)  # whoever brings it back, it is back
        await eventually(lambda: _is_open(bot, group))
