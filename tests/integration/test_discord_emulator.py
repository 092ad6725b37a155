"""discord.py chats on the emulator as on Discord: messages, DMs, edits, history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import discord
import pytest

from tests.emulators.discord import Channel, DiscordServer, Settings, User
from tests.support.discord_client import client_of, connected


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer(Settings(identify_every=0), limits=None) as running:
        yield running
        assert not running.violations


async def test_a_bot_hears_and_answers_in_a_channel_and_in_a_dm(
    server: DiscordServer, anna: User, place: Channel
) -> None:
    heard: asyncio.Queue[discord.Message] = asyncio.Queue()
    async with connected(server, client_of(heard)) as client:
        asked = server.people.say(place, anna, "@Legato Hello")
        message = await heard.get()
        assert (message.id, message.author.id, message.channel.id) == (asked.id, anna.id, place.id)
        assert client.user in message.mentions
        async with message.channel.typing():
            assert server.bot.id in place.typing
            answer = await message.reply("Hel")
        await answer.edit(content="Hello, Anna!")
        (shown,) = server.shown(place)
        assert shown.texts == ["Hel", "Hello, Anna!"]
        assert shown.answered is asked
        assert anna in shown.mentions
        assert server.bot.id not in place.typing

        private = server.people.direct(anna)
        server.people.say(private, anna, "Psst")
        message = await heard.get()
        assert isinstance(message.channel, discord.DMChannel)
        await message.channel.send("Yes?")
        assert [each.content for each in server.shown(private)] == ["Yes?"]


async def test_a_bot_opens_a_dm_itself(server: DiscordServer, anna: User, place: Channel) -> None:
    async with connected(server, client_of()) as client:
        user = await client.fetch_user(anna.id)
        await user.send("Good morning")
    assert [each.content for each in server.shown(server.people.direct(anna))] == ["Good morning"]


async def test_the_past_of_a_channel_can_be_read_from_a_message_on(
    server: DiscordServer, anna: User, place: Channel
) -> None:
    said = [server.people.say(place, anna, f"line {number}") for number in range(250)]
    async with connected(server, client_of()) as client:
        channel = client.get_partial_messageable(place.id, guild_id=place.guild.id if place.guild else None)
        mark = discord.Object(said[19].id)
        later = [message.content async for message in channel.history(after=mark, oldest_first=True, limit=None)]
        assert later == [f"line {number}" for number in range(20, 250)]
        before = [message.content async for message in channel.history(before=mark, limit=3)]
        assert before == ["line 18", "line 17", "line 16"]
        assert (await channel.fetch_message(said[7].id)).content == "line 7"


async def test_what_people_change_and_delete_is_told(server: DiscordServer, anna: User, place: Channel) -> None:
    told: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
    client = client_of()

    @client.event
    async def on_raw_message_edit(event: discord.RawMessageUpdateEvent) -> None:
        told.put_nowait((event.message.content, event.message_id))

    @client.event
    async def on_raw_message_delete(event: discord.RawMessageDeleteEvent) -> None:
        told.put_nowait(("", event.message_id))

    async with connected(server, client):
        said = server.people.say(place, anna, "Helo")
        server.people.edit(said, "Hello")
        assert await told.get() == ("Hello", said.id)
        server.people.delete(said)
        assert await told.get() == ("", said.id)
        with pytest.raises(discord.NotFound) as refused:
            await client.get_partial_messageable(place.id).fetch_message(said.id)
        assert refused.value.code == 10008
