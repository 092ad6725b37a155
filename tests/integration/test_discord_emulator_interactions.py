"""Slash commands, completions and buttons on the emulator, with discord.py's own command tree."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import discord
import pytest
from discord import app_commands

from tests.emulators.discord import Channel, DiscordServer, Settings, User
from tests.support.discord_client import client_of, connected
from tests.support.fakes import ManualClock

DAY = 86_400.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def server(clock: ManualClock) -> AsyncIterator[DiscordServer]:
    async with DiscordServer(Settings(identify_every=0, heartbeat=DAY), limits=None, clock=clock) as running:
        yield running


async def test_a_command_is_offered_and_answered(server: DiscordServer, anna: User, place: Channel) -> None:
    client = client_of()
    tree = app_commands.CommandTree(client)

    @tree.command(name="sing", description="Sing a song")
    @app_commands.describe(song="Which one")
    async def sing(interaction: discord.Interaction, song: str, loud: bool = False) -> None:
        await interaction.response.send_message(f"La {song}", ephemeral=loud)

    @sing.autocomplete("song")
    async def songs(interaction: discord.Interaction, typed: str) -> list[app_commands.Choice[str]]:
        return [app_commands.Choice(name=name, value=name) for name in ("alle", "vögel") if name.startswith(typed)]

    async with connected(server, client):
        with pytest.raises(LookupError, match="no command /sing"):
            server.people.command(place, anna, "sing", song="x")
        await tree.sync()
        typed = server.people.complete(place, anna, "sing", "song", "v")
        await server.until(lambda: typed.choices)
        assert [choice["value"] for choice in typed.choices] == ["vögel"]
        with pytest.raises(LookupError, match="needs song"):
            server.people.command(place, anna, "sing")
        used = server.people.command(place, anna, "sing", song="vögel")
        await server.until(lambda: used.shown)
        assert [message.content for message in used.shown] == ["La vögel"]
        assert server.shown(place) == used.shown

        private = server.people.command(place, anna, "sing", song="alle", loud=True)
        await server.until(lambda: private.shown)
        assert private.shown[0].only_for is anna
        assert server.shown(place) == used.shown, "nobody else sees it"
    assert not server.violations


async def test_a_deferred_answer_is_edited_until_the_token_dies(
    server: DiscordServer, clock: ManualClock, anna: User, place: Channel
) -> None:
    asked: asyncio.Queue[discord.Interaction] = asyncio.Queue()
    client = client_of()
    tree = app_commands.CommandTree(client)

    @tree.command(name="think", description="Think for long")
    async def think(interaction: discord.Interaction) -> None:
        await interaction.response.defer()
        asked.put_nowait(interaction)

    async with connected(server, client):
        await tree.sync()
        used = server.people.command(place, anna, "think")
        interaction = await asked.get()
        (loading,) = used.shown
        assert loading.flags & (1 << 7)
        assert loading.content == ""
        await interaction.edit_original_response(content="Done")
        assert used.shown[0].texts == ["Done"]
        assert not loading.flags & (1 << 7)
        await interaction.followup.send("And more")
        assert [message.content for message in used.shown] == ["Done", "And more"]
        await clock.advance(899)
        await interaction.edit_original_response(content="Done at last")
        await clock.advance(2)
        with pytest.raises(discord.HTTPException) as refused:
            await interaction.edit_original_response(content="Too late")
        assert (refused.value.status, refused.value.code) == (401, 50027)


async def test_an_answer_must_come_within_three_seconds_and_once(
    server: DiscordServer, clock: ManualClock, anna: User, place: Channel
) -> None:
    asked: asyncio.Queue[discord.Interaction] = asyncio.Queue()
    client = client_of()

    @client.event
    async def on_interaction(interaction: discord.Interaction) -> None:
        asked.put_nowait(interaction)

    tree = app_commands.CommandTree(client)
    tree.command(name="wait", description="Wait")(_nothing)
    async with connected(server, client):
        await tree.sync()
        late = server.people.command(place, anna, "wait")
        interaction = await asked.get()
        await clock.advance(3.5)
        assert server.people.failed(late)
        with pytest.raises(discord.NotFound) as refused:
            await interaction.response.defer()
        assert refused.value.code == 10062

        twice = server.people.command(place, anna, "wait")
        interaction = await asked.get()
        await interaction.response.send_message("One")
        assert not server.people.failed(twice)
        second = discord.Interaction(data=_as_it_came(server), state=interaction._state)
        with pytest.raises(discord.HTTPException) as refused:
            await second.response.send_message("Two")
        assert refused.value.code == 40060


async def _nothing(interaction: discord.Interaction) -> None:
    """Somebody else answers."""


def _as_it_came(server: DiscordServer) -> dict[str, Any]:
    """The newest interaction, for a client that does not know that it was answered."""
    *_, sent = server.journal.of("send INTERACTION_CREATE")
    return dict(sent.parameters["d"])


async def test_a_button_is_pressed(server: DiscordServer, anna: User, place: Channel) -> None:
    pressed: asyncio.Queue[discord.Interaction] = asyncio.Queue()
    heard: asyncio.Queue[discord.Message] = asyncio.Queue()
    client = client_of(heard)

    @client.event
    async def on_interaction(interaction: discord.Interaction) -> None:
        pressed.put_nowait(interaction)

    async with connected(server, client):
        server.people.say(place, anna, "@Legato May I?")
        view = discord.ui.View(timeout=None)
        view.add_item(discord.ui.Button(label="Yes", custom_id="approve:1:yes"))
        view.add_item(discord.ui.Button(label="No", custom_id="approve:1:no", style=discord.ButtonStyle.danger))
        await (await heard.get()).reply("Shall I?", view=view)
        (question,) = server.shown(place)
        press = server.people.press(question, anna, "Yes")
        interaction = await pressed.get()
        assert interaction.data is not None
        assert interaction.data.get("custom_id") == "approve:1:yes"
        await interaction.response.edit_message(content="You said yes.", view=None)
        assert press.original is question
        assert (question.content, question.buttons) == ("You said yes.", [])
        with pytest.raises(LookupError, match="no button"):
            server.people.press(question, anna, "No")
    assert not server.violations
