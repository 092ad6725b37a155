"""What Discord sends in a shape that nobody documents ends nothing, and is told of once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.emulators.discord import Channel, DiscordServer, Settings, User
from tests.support.discord_live import on_discord

ODD: tuple[tuple[str, Any, bool], ...] = (
    ("INTERACTION_CREATE", {"id": "5", "token": "t", "type": 2, "data": {"name": "new"}, "user": {"id": "6"}}, False),
    ("INTERACTION_CREATE", {"id": "5", "token": "t", "type": 3, "channel_id": "7", "data": {}}, False),
    ("INTERACTION_CREATE", {"id": "5", "token": "t", "type": 4, "data": {"name": "new"}}, False),
    ("INTERACTION_CREATE", {"type": 2, "channel_id": "7"}, False),
    ("INTERACTION_CREATE", {"id": None, "token": None, "type": 3, "channel_id": None}, False),
    ("INTERACTION_CREATE", None, False),
    ("MESSAGE_CREATE", {"id": "8", "content": "no channel"}, False),
    ("MESSAGE_CREATE", {"id": "eight", "channel_id": "nine"}, False),
    ("MESSAGE_CREATE", {"id": "8", "channel_id": "9", "author": {"id": "6"}, "type": 0, "timestamp": "never"}, False),
    ("MESSAGE_CREATE", {"id": "8", "channel_id": "9", "author": None}, True),
    ("MESSAGE_CREATE", [], False),
    ("MESSAGE_UPDATE", {"id": "8", "channel_id": None, "edited_timestamp": "x", "author": {}, "content": None}, False),
    ("MESSAGE_DELETE", {"id": "8"}, False),
    ("MESSAGE_DELETE_BULK", {"channel_id": "9"}, False),
    ("GUILD_ROLE_CREATE", {"role": {}}, True),
    ("GUILD_CREATE", {"id": "x"}, True),
    ("GUILD_DELETE", {}, True),
    ("CHANNEL_CREATE", {"id": "5"}, True),
    ("CHANNEL_UPDATE", {"type": "text"}, True),
    ("CHANNEL_DELETE", {}, True),
    ("THREAD_CREATE", {"id": "5", "guild_id": "none"}, True),
    ("THREAD_UPDATE", "put away", True),
    ("THREAD_LIST_SYNC", {"threads": 3}, True),
    ("NEVER_HEARD_OF", {"a": 1}, False),
)


@pytest.fixture
async def discord() -> AsyncIterator[DiscordServer]:
    """The emulator itself counts no violation here: a callback for an interaction that it never made is one."""
    async with DiscordServer(Settings(identify_every=0), limits=None) as running:
        yield running


async def test_events_of_another_shape_end_nothing(
    tmp_path: Path, discord: DiscordServer, anna: User, place: Channel, capsys: pytest.CaptureFixture[str]
) -> None:
    async with on_discord(tmp_path, discord, anna, rules={"quoted": 0}) as bot:
        bot.says("Hello")
        await bot.until_shown("echo: Hello")
        for _ in range(3):
            for event, data, in_guild in ODD:
                discord.people.odd(event, data, in_guild=in_guild)
        bot.says("There?")
        await bot.until_shown("echo: Hello", "echo: There?")
        bot.says("@Legato and here?", place)
        await bot.until_shown("echo: and here?", chat=place)
        assert len(list(discord.journal.of("GET /gateway/"))) == 1  # one connection
    told = capsys.readouterr().out
    kinds = {event for event, _, _ in ODD}
    assert 0 < told.count("event_unreadable") <= len(kinds) + 4


async def test_a_payload_that_is_no_event_costs_a_connection_at_most(
    tmp_path: Path, discord: DiscordServer, anna: User, capsys: pytest.CaptureFixture[str]
) -> None:
    async with on_discord(tmp_path, discord, anna) as bot:
        bot.says("Hello")
        await bot.until_shown("echo: Hello")
        discord.people.odd("READY", {"v": 10})
        bot.says("There?")
        await bot.until_shown("echo: Hello", "echo: There?")
    assert "discord_unreadable" in capsys.readouterr().out
