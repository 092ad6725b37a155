"""discord.py, pointed at the emulator, and a bot that says little."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final
from unittest.mock import patch

import discord
import yarl
from discord.gateway import DiscordWebSocket
from discord.http import Route

from tests.emulators.discord import DiscordServer

READY_AFTER: Final = 0.01  # seconds without another guild after which discord.py believes it has seen all


@contextmanager
def pointed_at(server: DiscordServer) -> Iterator[None]:
    """discord.py keeps its addresses in classes; here they are the emulator's for a while."""
    with (
        patch.object(Route, "BASE", server.api_url),
        patch.object(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(server.gateway_url)),
    ):
        yield


@asynccontextmanager
async def connected(server: DiscordServer, client: discord.Client, *, token: str = "") -> AsyncIterator[discord.Client]:
    """A client that is logged in and has seen its guilds."""
    with pointed_at(server):
        async with client:
            running = asyncio.create_task(client.start(token or server.token))
            ready = asyncio.create_task(client.wait_until_ready())
            await asyncio.wait((running, ready), return_when=asyncio.FIRST_COMPLETED)
            ready.cancel()
            if running.done():
                running.result()
            try:
                yield client
            finally:
                await client.close()
                await asyncio.gather(running, return_exceptions=True)


def client_of(
    heard: asyncio.Queue[discord.Message] | None = None, *, content: bool = True, silence: float = 60.0
) -> discord.Client:
    """A client with the intents of a chat bot, which puts what it hears into a queue. `content`: it asks for the text
    of what is not meant for it; `silence`: seconds without a word of the gateway after which it connects again."""
    intents = discord.Intents(guilds=True, messages=True, reactions=True, message_content=content)
    client = discord.Client(
        intents=intents,
        max_messages=None,
        chunk_guilds_at_startup=False,
        guild_ready_timeout=READY_AFTER,
        heartbeat_timeout=silence,
    )

    async def at_once(shard_id: int | None, *, initial: bool = False) -> None:
        """discord.py waits five seconds before another session; here none has to wait."""

    client.before_identify_hook = at_once  # type: ignore[method-assign]

    @client.event
    async def on_message(message: discord.Message) -> None:
        if heard is not None and message.author != client.user:
            heard.put_nowait(message)

    return client
