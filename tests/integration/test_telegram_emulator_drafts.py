"""`sendMessageDraft` of the emulated Bot API before python-telegram-bot's own client."""

from __future__ import annotations

import pytest
from telegram import MessageEntity
from telegram.error import Forbidden, RetryAfter

from tests.emulators.telegram import Flood
from tests.support.fakes import ManualClock
from tests.support.telegram_client import durations, emulated, refused, started

__all__ = ["durations"]
pytestmark = pytest.mark.usefixtures("durations")


def drafts(server, chat):
    return {topic: (draft.id, draft.text) for topic, draft in server.cloud.drafts(chat).items()}


async def test_a_draft_grows_and_is_gone_with_the_next_message():
    async with emulated() as (server, bot):
        _, chat = started(server)
        assert await bot.send_message_draft(chat.id, 5, "Thin") is True
        await bot.send_message_draft(chat.id, 5, "Thinking")
        assert drafts(server, chat) == {None: (5, "Thinking")}
        assert server.shown(chat) == []
        await bot.send_message(chat.id, "Thought.")
        assert drafts(server, chat) == {}


async def test_another_number_takes_its_place_and_what_a_person_writes_does_not():
    async with emulated() as (server, bot):
        anna, chat = started(server)
        await bot.send_message_draft(chat.id, 5, "One")
        await bot.send_message_draft(chat.id, 2**31, "Two")
        server.people.say(chat, anna, "Well?")
        await bot.send_chat_action(chat.id, "typing")
        assert drafts(server, chat) == {None: (2**31, "Two")}


async def test_a_draft_is_shown_for_thirty_seconds():
    clock = ManualClock()
    async with emulated(clock=clock) as (server, bot):
        _, chat = started(server)
        await bot.send_message_draft(chat.id, 5, "Thinking")
        await clock.advance(29)
        assert drafts(server, chat) == {None: (5, "Thinking")}
        await clock.advance(2)
        assert drafts(server, chat) == {}


async def test_each_topic_of_a_private_chat_has_its_own():
    async with emulated(limits=None) as (server, bot):
        anna, chat = started(server)
        one, two = (server.people.topic(chat, anna, name) for name in ("One", "Two"))
        for topic in (one, two):
            await bot.send_message_draft(chat.id, 5, "Thinking", message_thread_id=topic)
        await bot.send_message(chat.id, "Thought.", message_thread_id=one)
        assert drafts(server, chat) == {two: (5, "Thinking")}
        with refused("Message thread not found"):
            await bot.send_message_draft(chat.id, 5, "Thinking", message_thread_id=999)


async def test_what_is_marked_in_it_is_checked_as_in_a_message():
    async with emulated() as (server, bot):
        _, chat = started(server)
        await bot.send_message_draft(chat.id, 5, "so bold", entities=[MessageEntity("bold", 3, 4)])
        assert server.cloud.drafts(chat)[None].entities == [{"type": "bold", "offset": 3, "length": 4}]
        with refused("Can't parse entities"):
            await bot.send_message_draft(chat.id, 5, "*open", parse_mode="MarkdownV2")


async def test_an_empty_one_is_a_sign_that_the_bot_thinks():
    async with emulated() as (server, bot):
        _, chat = started(server)
        for text in (None, " \n"):
            await bot.send_message_draft(chat.id, 5, text)
        assert drafts(server, chat) == {None: (5, "")}


async def test_what_is_refused():
    async with emulated() as (server, bot):
        anna, chat = started(server)
        group = server.people.group("Team", anna, bot="administrator")
        with refused("Textdraft_peer_invalid"):
            await bot.send_message_draft(group.id, 5, "Thinking")
        with refused("Random_id_invalid"):
            await bot.send_message_draft(chat.id, 0, "Thinking")
        await bot.send_message_draft(chat.id, 5, "x" * 4096)
        with refused("Message is too long"):
            await bot.send_message_draft(chat.id, 5, "x" * 4097)
        with refused("Chat not found"):
            await bot.send_message_draft(77, 5, "Thinking")
        server.people.block(anna)
        with pytest.raises(Forbidden, match="blocked by the user"):
            await bot.send_message_draft(chat.id, 5, "Thinking")
        assert not server.violations


async def test_it_is_no_message_to_flood_control_and_keeps_the_rest_all_the_same():
    async with emulated(clock=ManualClock()) as (server, bot):
        _, chat = started(server)
        for number in range(40):
            await bot.send_message_draft(chat.id, 5, f"{number}")
        await bot.send_message(chat.id, "Thought.")
        server.faults.add(Flood(seconds=9), method="sendMessageDraft")
        with pytest.raises(RetryAfter):
            await bot.send_message_draft(chat.id, 6, "Thinking")
        assert not server.violations
        with pytest.raises(RetryAfter):
            await bot.send_message_draft(chat.id, 6, "Thinking")
        assert [violation.method for violation in server.violations] == ["sendMessageDraft"]
