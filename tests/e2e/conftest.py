"""A Discord with somebody on it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.emulators.discord import Channel, DiscordServer, Settings, User


@pytest.fixture
async def discord() -> AsyncIterator[DiscordServer]:
    """Without its limits; whoever breaks one of its rules fails the test."""
    async with DiscordServer(Settings(identify_every=0), limits=None) as running:
        yield running
        assert [str(each) for each in running.violations] == []


@pytest.fixture
def anna(discord: DiscordServer) -> User:
    """Somebody who may talk to the bot."""
    return discord.people.person("Anna")


@pytest.fixture
def place(discord: DiscordServer, anna: User) -> Channel:
    """A channel of Anna's server."""
    return discord.people.general(discord.people.guild("Choir", anna))
