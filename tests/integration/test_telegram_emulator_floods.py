"""Flood control of the emulated Telegram, as python-telegram-bot's client meets it, and orders over HTTP."""

from __future__ import annotations

import pytest
from telegram.error import RetryAfter

from tests.emulators.telegram import Flood, Limits
from tests.support.telegram_client import durations, emulated, started

__all__ = ["durations"]
pytestmark = pytest.mark.usefixtures("durations")


def seconds(error):
    """Return the seconds for which a 429 wants the chat left alone."""
    return error.value.retry_after.total_seconds()


def texts(server, chat):
    return [message.text for message in server.shown(chat)]


# Flood control


async def test_a_short_burst_in_a_chat_is_let_through(clock):
    async with emulated(clock=clock, limits=Limits(chat_burst=3)) as (server, bot):
        _, chat = started(server)
        for text in "abc":
            await bot.send_message(chat.id, text)
        with pytest.raises(RetryAfter) as refused:
            await bot.send_message(chat.id, "d")
        assert seconds(refused) == 1
        await clock.advance(1)
        await bot.send_message(chat.id, "d")
        assert (texts(server, chat), server.violations) == (["a", "b", "c", "d"], [])


async def test_a_call_before_its_time_is_a_violation_and_makes_nothing_longer(clock):
    async with emulated(clock=clock) as (server, bot):
        _, chat = started(server)
        _, other = started(server, "Ben")
        server.faults.add(Flood(seconds=30), method="sendMessage", chat_id=chat.id)
        with pytest.raises(RetryAfter):
            await bot.send_message(chat.id, "x")
        await clock.advance(10)
        await bot.send_message(other.id, "others go on")
        await bot.get_me()
        for call in (bot.send_message(chat.id, "x"), bot.send_chat_action(chat.id, "typing")):
            with pytest.raises(RetryAfter) as refused:
                await call
            assert seconds(refused) == 20
        assert [violation.method for violation in server.violations] == ["sendMessage", "sendChatAction"]
        await clock.advance(20)
        await bot.send_message(chat.id, "in time")
        assert texts(server, chat) == ["in time"]


async def test_twenty_a_minute_in_a_group(clock):
    async with emulated(clock=clock) as (server, bot):
        chat = server.people.group("Team", server.people.person("Anna"))
        for number in range(20):
            await bot.send_message(chat.id, f"{number}")
            await clock.advance(1)
        with pytest.raises(RetryAfter) as refused:
            await bot.send_message(chat.id, "one more")
        assert seconds(refused) == 40
        await clock.advance(40)
        await bot.send_message(chat.id, "one more")


async def test_thirty_a_second_over_all_chats(clock):
    async with emulated(clock=clock) as (server, bot):
        chats = [started(server, f"Person {number}")[1] for number in range(31)]
        for chat in chats[:30]:
            await bot.send_message(chat.id, "x")
        with pytest.raises(RetryAfter):
            await bot.send_message(chats[30].id, "x")
        await clock.advance(1)
        await bot.send_message(chats[30].id, "x")


async def test_edits_count_as_messages(clock):
    async with emulated(clock=clock, limits=Limits(chat_burst=2)) as (server, bot):
        _, chat = started(server)
        message = await bot.send_message(chat.id, "a")
        await bot.edit_message_text("ab", chat.id, message.message_id)
        with pytest.raises(RetryAfter):
            await bot.edit_message_text("abc", chat.id, message.message_id)
        assert texts(server, chat) == ["ab"]


async def test_flood_control_can_be_switched_off():
    async with emulated(limits=None) as (server, bot):
        _, chat = started(server)
        for number in range(40):
            await bot.send_message(chat.id, f"{number}")
        assert len(server.shown(chat)) == 40
