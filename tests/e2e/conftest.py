"""A Discord with somebody on it, a store that is opened anew at each start, and a browser."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from adapters.discord.connection import ApiClient
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from tests.emulators.discord import Channel, DiscordServer, Settings, User
from tests.support.browser import browser
from tests.support.discord_live import careless
from tests.support.firefox import Firefox
from tests.support.firefox import firefox as open_firefox
from tests.support.model import PATIENCE

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from tests.support.redis_server import RedisServer  # at run time it is a plugin, which nobody may import first


@pytest.fixture(params=["sqlite", pytest.param("redis", marks=pytest.mark.slow)])
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
async def discord(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[DiscordServer]:
    """Without its limits, and in no hurry, for a busy machine: Discord waits for three seconds for a command's first
    word. Whoever breaks one of its rules fails the test, and so does a text that might ping somebody or be shown
    twice."""
    monkeypatch.setattr("adapters.discord.interactions._FIRST_WORD", PATIENCE)
    async with DiscordServer(Settings(identify_every=0, acknowledge=PATIENCE), limits=None) as running:
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


@pytest.fixture
def without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Discord's library asks every voice server for TLS."""
    connect = ApiClient.ws_connect

    async def plainly(calls: ApiClient, url: str, **how: Any) -> Any:
        return await connect(calls, str(url).replace("wss://", "ws://"), **how)

    monkeypatch.setattr(ApiClient, "ws_connect", plainly)


@pytest_asyncio.fixture
async def firefox(tmp_path: Path) -> AsyncIterator[Firefox]:
    """A Firefox of the test's own."""
    (tmp_path / "profile").mkdir()
    async with open_firefox(tmp_path / "profile") as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    """One browser for a module, whose tests run in its loop: a start takes more than many a test. Each person has a
    profile of their own."""
    async with browser() as running:
        yield running
