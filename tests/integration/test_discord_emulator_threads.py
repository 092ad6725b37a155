"""Threads and forums on the emulator, with discord.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import discord
import pytest

from tests.emulators.discord import Channel, DiscordServer, Kind, Settings, User
from tests.support.discord_client import client_of, connected


@pytest.fixture
async def server() -> AsyncIterator[DiscordServer]:
    async with DiscordServer(Settings(identify_every=0), limits=None) as running:
        yield running


async def test_a_bot_opens_a_thread_under_a_message(server: DiscordServer, anna: User, place: Channel) -> None:
    heard: asyncio.Queue[discord.Message] = asyncio.Queue()
    async with connected(server, client_of(heard)):
        said = server.people.say(place, anna, "@Legato A long story")
        message = await heard.get()
        thread = await message.create_thread(name="A long story", auto_archive_duration=1440)
        assert thread.id == message.id == said.id
        await thread.send("Tell me.")
        room = server.cloud.channels[thread.id]
        assert [each.content for each in server.shown(room)] == ["Tell me."]
        server.people.say(room, anna, "Once upon a time")
        heard_there = await heard.get()
        assert heard_there.channel.id == thread.id
        assert isinstance(heard_there.channel, discord.Thread)
        assert heard_there.channel.parent_id == place.id
        with pytest.raises(discord.HTTPException) as refused:
            await message.create_thread(name="Again")
        assert refused.value.code == 160004
        server.people.archive(room)
        await thread.send("Still there?")
        assert not room.archived


async def test_people_open_threads_and_posts_of_a_forum(server: DiscordServer, anna: User, place: Channel) -> None:
    assert place.guild is not None
    forum = server.people.channel(place.guild, "ideas", kind=Kind.FORUM)
    heard: asyncio.Queue[discord.Message] = asyncio.Queue()
    async with connected(server, client_of(heard)) as client:
        post = server.people.post(forum, anna, "A song", "Could @Legato write one?")
        message = await heard.get()
        assert message.id == message.channel.id == post.id
        assert isinstance(message.channel, discord.Thread)
        assert message.channel.parent is not None
        assert message.channel.parent.type is discord.ChannelType.forum
        assert client.user in message.mentions

        thread = server.people.thread(place, anna, "Aside")
        note = await heard.get()
        assert note.type is discord.MessageType.thread_created
        server.people.say(thread, anna, "psst")
        assert (await heard.get()).content == "psst"

        seen = client.get_channel(forum.id)
        assert isinstance(seen, discord.ForumChannel)
        made = await seen.create_thread(name="Mine", content="A post of the bot's")
        assert made.message.id == made.thread.id
        guild = client.guilds[0]
        assert {each.id for each in await guild.active_threads()} == {post.id, thread.id, made.thread.id}
    assert not server.violations


async def test_a_private_thread_is_for_those_in_it(server: DiscordServer, anna: User, place: Channel) -> None:
    heard: asyncio.Queue[discord.Message] = asyncio.Queue()
    async with connected(server, client_of(heard)):
        secret = server.people.thread(place, anna, "Secret", private=True)
        server.people.say(secret, anna, "nobody hears this")
        server.people.say(place, anna, "everybody hears this")
        assert (await heard.get()).content == "everybody hears this"
