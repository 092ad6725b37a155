"""A Discord with somebody on it, and a store that is opened anew at each start."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from tests.emulators.discord import Channel, DiscordServer, Settings, User
from tests.support.discord_live import careless

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer


@pytest.fixture(params=["sqlite", "redis"])
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    """Opens the same store, of either kind, for one more start."""
    if request.param == "redis":
        server: RedisServer = request.getfixturevalue("redis_server")
        server.empty()

    def store() -> Store:
        if request.param == "redis":
            return RedisStore(server.url, clock=SystemClock())
        return SqliteStore(tmp_path / "legato.db", clock=SystemClock())

    return store


@pytest.fixture
async def discord() -> AsyncIterator[DiscordServer]:
    """Without its limits; whoever breaks one of its rules fails the test, and so does a text that might ping somebody
    or be shown twice."""
    async with DiscordServer(Settings(identify_every=0), limits=None) as running:
        yield running
        assert [str(each) for each in running.violations] == []
        assert list(careless(running)) == []


@pytest.fixture
def anna(discord: DiscordServer) -> User:
    """Somebody who may talk to the bot."""
    return discord.people.person("Anna")


@pytest.fixture
def place(discord: DiscordServer, anna: User) -> Channel:
    """A channel of Anna's server."""
    return discord.people.general(discord.people.guild("Choir", anna))
