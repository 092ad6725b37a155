"""A whole gateway with a bot on simcord (https://simcord.readthedocs.io), a Discord that nobody here wrote.

It has no sockets: its API takes the bot's calls as they are made, and its gateway gives payloads to the library's own
parsers. Its people come from an `Env`, whose own bot says nothing. It takes nonces and does not look at them.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import discord
import simcord
from pydantic import SecretStr
from simcord.backend import serializers
from simcord.gateway import ShardRouter
from simcord.http import FakeHTTPClient

from adapters.discord.adapter import DiscordAdapter
from adapters.discord.connection import DiscordClient
from adapters.discord.platform import DiscordSettings
from gateway.app import build as bootstrap
from gateway.app.gateway import Gateway
from gateway.app.plugins import all_commands
from gateway.people.access import AccessSettings
from gateway.runtime.clock import SystemClock
from tests.support.gateway import config_in
from tests.support.hosts import host
from tests.support.model import PATIENCE, FakeModel


class _ItsHour(SystemClock):
    """The machine's time, but for the hour, which is simcord's."""

    def __init__(self, env: simcord.Env) -> None:
        self._wrong = env.now().timestamp() - super().now()

    def now(self) -> float:
        return super().now() + self._wrong


class _Calls(FakeHTTPClient):
    """simcord's API, asked as the adapter asks. `asked`: methods and addresses, in their order; `done` is set whenever
    one more is."""

    base_url = None

    def __init__(self, env: simcord.Env) -> None:
        super().__init__(env.backend, asyncio.get_running_loop())
        self.asked: list[str] = []
        self.done = asyncio.Event()

    async def request(self, route: Any, **how: Any) -> Any:
        """As the library's."""
        how.pop("timeout", None)
        self.asked.append(f"{route.method} {route.path}")
        try:
            return await super().request(route, **how)
        finally:
            self.done.set()


@dataclass(slots=True, kw_only=True)
class SimBot:
    """A running gateway, and the simcord that it is on."""

    env: simcord.Env
    gateway: Gateway
    calls: _Calls
    guild: Any
    user: Any
    anna: Any

    def shown(self, channel: Any) -> list[str]:
        """Return the present texts of the bot's messages in a channel."""
        found = (message for message in channel.history() if message.author.id == self.env.backend.bot_user.id)
        return [message.content for message in found]

    @property
    def direct(self) -> Any:
        """Anna's DM with the bot."""
        return self.user.dm_channel

    @property
    def mention(self) -> str:
        """The bot's."""
        return f"<@{self.env.backend.bot_user.id}>"

    async def until(self, condition: Callable[[], Any]) -> None:
        """Return once it holds. Fails after `PATIENCE`."""
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self.calls.done.clear()
                await self.calls.done.wait()

    async def until_shown(self, channel: Any, *texts: str) -> None:
        """Return once the bot's messages are these."""
        await self.until(lambda: self.shown(channel) == list(texts))


@asynccontextmanager
async def on_simcord(folder: Path, model: FakeModel | None = None, **rules: Any) -> AsyncIterator[SimBot]:
    """A gateway on simcord, until the block ends, in a guild with Anna, who may talk to it."""
    mute = discord.Client(intents=discord.Intents(guilds=True))
    async with simcord.run(mute) as env:
        guild = env.create_guild()
        user = env.create_user("anna")
        anna = guild.add_member(user)
        calls = _Calls(env)

        async def keep(connection: DiscordClient) -> None:
            """Listen to simcord's gateway until cancelled."""
            state = connection._connection
            router = ShardRouter(env.backend, state, connection.dispatch, 1, (0,))
            env.backend.subscribers.append(router.feed)
            try:
                router.identify(0)
                for each in env.backend.guilds.values():
                    router.feed("GUILD_CREATE", serializers.guild_create_payload(env.backend, each))
                connection.connected_at = connection._clock.now()
                listening.set()
                await asyncio.Event().wait()
            finally:
                env.backend.subscribers.remove(router.feed)

        listening = asyncio.Event()
        clock = _ItsHour(env)
        menu = [each.entry for each in all_commands().commands]
        number = base64.urlsafe_b64encode(str(env.backend.bot_user.id).encode()).decode().rstrip("=")
        settings = DiscordSettings(token=SecretStr(f"{number}.sim.cord"), **rules)
        adapter = DiscordAdapter(settings, host(clock, menu=menu))
        connection = adapter._connection
        connection.http = connection._connection.http = calls
        config = config_in(folder, access=AccessSettings(allow=(f"discord:{anna.id}",)))
        parts = bootstrap.Parts(providers={"offline": model or FakeModel()}, clock=clock)
        gateway = bootstrap.build(config, [adapter], parts)
        with patch.object(DiscordClient, "keep", keep):
            serving = asyncio.create_task(gateway.run())
            try:
                await asyncio.wait((asyncio.create_task(listening.wait()), serving), return_when="FIRST_COMPLETED")
                yield SimBot(env=env, gateway=gateway, calls=calls, guild=guild, user=user, anna=anna)
            finally:
                gateway.stop()
                async with asyncio.timeout(PATIENCE):
                    await serving
