"""Somebody on the Discord of a test, which each file starts as it needs it."""

from __future__ import annotations

import pytest

from tests.emulators.discord import Channel, DiscordServer, User


@pytest.fixture
def anna(server: DiscordServer) -> User:
    """Somebody who writes."""
    return server.people.person("Anna")


@pytest.fixture
def place(server: DiscordServer, anna: User) -> Channel:
    """A channel of their server."""
    return server.people.general(server.people.guild("Choir", anna))
