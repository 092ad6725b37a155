"""The emulated platforms as somebody uses them who types lines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import discord
import pytest
from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from gateway.app.config import load_config, variables
from tests.emulators.discord import DiscordServer, Settings
from tests.emulators.lines import Lines, OnDiscord, OnSlack, OnTelegram, OnWhatsApp, Person
from tests.emulators.slack import SlackServer
from tests.emulators.telegram import TelegramServer
from tests.emulators.whatsapp import WhatsAppServer
from tests.support.discord_client import client_of, connected
from tests.support.telegram_client import emulated


@pytest.mark.parametrize(
    ("name", "server", "played"),
    [
        ("telegram", TelegramServer, OnTelegram),
        ("discord", DiscordServer, OnDiscord),
        ("slack", SlackServer, OnSlack),
        ("whatsapp", WhatsAppServer, OnWhatsApp),
    ],
)
async def test_what_is_typed_is_said_and_the_printed_configuration_is_taken(
    tmp_path: Path, name: str, server: Callable[[], AbstractAsyncContextManager[Any]], played: Callable[[Any], Person]
) -> None:
    async with server() as emulator:
        anna = played(emulator)
        settings, _, lines = anna.configuration.partition("# .env beside it\n")
        (tmp_path / "config.yaml").write_text(settings)
        (tmp_path / ".env").write_text(lines)
        found = load_config(tmp_path / "config.yaml", variables([tmp_path], {})).adapters[name]
        assert found.enabled  # type: ignore[attr-defined]
        assert found.base_url in anna.configuration  # type: ignore[attr-defined]
        told: list[str] = []
        reader = asyncio.StreamReader()
        reader.feed_data(b"Good morning\n#Good evening\n/help\n\n!Nothing\n")
        reader.feed_eof()
        await Lines(anna, told.append).run(reader)
    assert told == []


async def test_what_a_bot_shows_on_telegram_is_told_once_and_its_button_pressed() -> None:
    told: list[str] = []
    async with emulated(limits=None) as (server, bot):
        lines = Lines(OnTelegram(server), told.append)
        lines.enter("/start now")
        lines.enter("#Hello @all")
        (said, *_) = await bot.get_updates()
        buttons = InlineKeyboardMarkup([[InlineKeyboardButton("Yes", callback_data="y")]])
        sent = await bot.send_message(said.message.chat.id, "Su", reply_markup=buttons)
        for text in (None, "Sure?"):
            if text:
                await bot.edit_message_text(text, said.message.chat.id, sent.message_id, reply_markup=buttons)
            lines.show()
            lines.show()
        lines.enter("!Yes")
        (pressed,) = await bot.get_updates(offset=said.update_id + 1, allowed_updates=["callback_query"])
        lines.enter("x" * 5_000)
    assert said.message.text == "/start now"
    assert pressed.callback_query.data == "y"
    assert told == ["Su [Yes]", "Sure? [Yes]", "A message has at most 4096 characters."]


async def test_what_a_bot_shows_on_discord_is_told_once_and_its_button_pressed() -> None:
    told: list[str] = []
    heard: asyncio.Queue[discord.Message] = asyncio.Queue()
    pressed: asyncio.Queue[discord.Interaction] = asyncio.Queue()
    async with DiscordServer(Settings(identify_every=0), limits=None) as server:
        lines, client = Lines(OnDiscord(server), told.append), client_of(heard)
        client.event(_named("on_interaction", pressed.put))
        async with connected(server, client):
            lines.enter("#@Legato Sure?")
            view = discord.ui.View(timeout=None)
            view.add_item(discord.ui.Button(label="Yes", custom_id="y"))
            await (await heard.get()).reply("Su", view=view)
            lines.show()
            lines.show()
            lines.enter("!Yes")
            assert ((await pressed.get()).data or {})["custom_id"] == "y"
    assert told == ["#general Su [Yes]"]


def _named(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
    async def event(*args: Any) -> None:
        await call(*args)

    event.__name__ = name
    return event
