"""The emulator as somebody at a terminal uses it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from gateway.app.config import load_config, variables
from tests.emulators.telegram.drawing import draw_chat, draw_text
from tests.emulators.telegram.terminal import Terminal, configuration
from tests.emulators.telegram.typist import Typist
from tests.support.telegram_client import emulated


@asynccontextmanager
async def typing():
    """A server, a client of it, and somebody who types."""
    async with emulated(limits=None) as (server, bot):
        yield server, bot, Typist(server)


def drawn(server, typist):
    return fragment_list_to_text(draw_chat(typist.chat, typist.me, server.bot, server.cloud.drafts(typist.chat)))


async def test_what_it_prints_is_a_configuration_that_is_taken(tmp_path):
    async with typing() as (server, _, _):
        settings, _, line = configuration(server).partition("# .env beside it\n")
        path = tmp_path / "config.yaml"
        path.write_text(settings)
        (tmp_path / ".env").write_text(line)
        telegram = load_config(path, variables([path.parent], {})).adapters["telegram"]
        assert telegram.enabled
        assert (telegram.token.get_secret_value(), telegram.base_url) == (server.token, server.base_url)


async def test_what_is_typed_is_said_and_the_answer_shown():
    async with typing() as (server, bot, anna):
        anna.enter("/start now")
        buttons = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="y")]])
        sent = await bot.send_message(anna.chat.id, "Su", reply_markup=buttons)
        await bot.edit_message_text("Sure?", anna.chat.id, sent.message_id, reply_markup=buttons)
        anna.enter("/press 1")
        said, pressed = await bot.get_updates()
        assert (said.message.text, pressed.callback_query.data) == ("/start now", "y")
        assert anna.said == "(the button is being pressed)"
        await pressed.callback_query.answer("So be it")
        assert anna.said == "So be it"
        assert "/start now" in drawn(server, anna)
        assert "edited 1×\nSure?\n 1 Yes  \n" in drawn(server, anna)


async def test_commands_that_the_terminal_knows_are_said_with_two_slashes():
    async with typing() as (_, bot, anna):
        anna.enter("/help")
        anna.enter("//as said")
        assert [update.message.text for update in await bot.get_updates()] == ["/help", "/as said"]


async def test_one_can_be_several_people_in_several_places():
    async with typing() as (_, bot, typist):
        typist.enter("/as Ben")
        typist.enter("/forum Plans")
        typist.enter("/topic Trip")
        typist.enter("/ask where?")
        typist.enter("/as Anna")
        typist.enter("/reply 3 @legato_bot knows")
        typist.enter("/private")
        typist.enter("/photo look")
        opened, asked, replied, photo = (update.message for update in await bot.get_updates())
        assert opened.forum_topic_created.name == "Trip"
        assert [message.from_user.first_name for message in (asked, replied, photo)] == ["Ben", "Anna", "Anna"]
        assert (replied.message_thread_id, replied.reply_to_message.text) == (opened.message_id, "/ask where?")
        assert photo.caption == "look"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("/press 1", "Name a button by its number."),
        ("/reply x", "Name a message by the number after its #."),
        ("/topic Trip", "There are no topics here: make a forum with /forum TITLE."),
        ("/fault boredom", "The faults are lose, slow, break, refuse, flood."),
        ("/file /nowhere/at/all", "No such file"),
    ],
)
async def test_what_cannot_be_done_is_said(line, answer):
    async with typing() as (_, _, typist):
        assert typist.enter(line)
        assert answer in typist.said


async def test_what_the_bot_is_just_writing_is_drawn_below_what_it_wrote():
    async with typing() as (server, bot, anna):
        anna.enter("/start")
        await bot.send_message_draft(anna.chat.id, 1)
        assert drawn(server, anna).endswith("\nLegato is writing\nThinking…\n")
        await bot.send_message_draft(anna.chat.id, 1, "So *far*", parse_mode="MarkdownV2")
        assert drawn(server, anna).endswith("\nLegato is writing\nSo far\n")
        await bot.send_message(anna.chat.id, "So good")
        assert "is writing" not in drawn(server, anna)


async def test_the_whole_screen_takes_keys():
    async with emulated() as (server, _):
        with create_pipe_input() as keys:
            terminal = Terminal(server, stdin=keys, stdout=DummyOutput())
            running = asyncio.create_task(terminal.run())
            keys.send_text("Good morning\r")
            await server.until(lambda: len(server.cloud.updates))
            keys.send_text("/quit\r")
            await running
        assert [update.body["text"] for update in server.cloud.updates.waiting()] == ["Good morning"]


def test_formatting_is_drawn_where_its_utf16_offsets_say():
    entities = [{"type": "bold", "offset": 3, "length": 1}, {"type": "text_link", "offset": 5, "length": 1, "url": "x"}]
    assert draw_text("\N{FOX FACE} b l", entities) == [
        ("", "\N{FOX FACE} "),
        ("bold", "b"),
        ("", " "),
        ("class:link", "l"),
        ("class:note", " (x)"),
    ]
