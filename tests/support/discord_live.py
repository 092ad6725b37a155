"""A whole gateway with a bot on the emulated Discord: what people see is what is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from adapters.discord.adapter import DiscordAdapter
from adapters.discord.platform import DiscordSettings
from gateway.agent.tools.base import Tool
from gateway.app import build as bootstrap
from gateway.app.plugins import all_commands
from gateway.app.serving import listens, shows
from gateway.domain.chat import SessionKey
from gateway.domain.turn import BUSY
from gateway.people.access import AccessSettings
from gateway.providers.plugin import ModelSettings as ModelEntry
from gateway.runtime.clock import Clock, SystemClock
from gateway.runtime.points import Points, ignore_points
from gateway.store.port import Store
from tests.emulators.discord import Channel, DiscordServer, User
from tests.support.gateway import config_in
from tests.support.hosts import host
from tests.support.live_bot import LiveBot
from tests.support.model import PATIENCE, FakeModel
from tests.support.waiting import pauses

FORGET = "(forget it)"


@dataclass(slots=True, kw_only=True)
class Bot(LiveBot):
    """A running gateway and the Discord that it is on. Anna may talk to it, and whoever `allow` adds."""

    discord: DiscordServer
    adapter: DiscordAdapter
    anna: User

    @property
    def chat(self) -> Channel:
        """Anna's with the bot."""
        return self.discord.people.direct(self.anna)

    def says(self, text: str, chat: Channel | None = None, **how: Any) -> Any:
        """Anna writes."""
        return self.discord.people.say(chat or self.chat, self.anna, text, **how)

    def shown(self, chat: Channel | None = None) -> list[str]:
        """Return the present texts of the bot's messages, except that it is busy."""
        texts = [message.content for message in self.discord.shown(chat or self.chat)]
        return [text for text in texts if text != BUSY]

    async def until(self, condition: Callable[[], Any]) -> None:
        """Return once it holds. Fails after `PATIENCE`."""
        async with asyncio.timeout(PATIENCE):
            await self.discord.until(condition)

    async def until_waiting(self, *texts: str, chat: Channel | None = None) -> None:
        """Return once these texts of Anna's wait in their lane. FORGET: a message that is to be forgotten."""
        place = chat or self.chat
        user = None if place.guild is None else str(self.anna.id)
        key = SessionKey(platform="discord", chat=str(place.id), user=user)
        async with asyncio.timeout(PATIENCE):
            pause = pauses()
            while True:
                waiting = await self.gateway.store.waiting(key, len(texts) + 1)
                said = [
                    FORGET if item.inbound.kind == "withdrawn" and item.inbound.text else item.inbound.text
                    for item in waiting
                ]
                if said == list(texts):
                    return
                await asyncio.sleep(next(pause))


async def ask(bot: Bot, place: Channel, text: str) -> str:
    """Say something in the channel; returns the bot's next message there."""
    before = len(bot.shown(place))
    bot.says(f"@Legato {text}", place)
    await bot.until(lambda: len(bot.shown(place)) > before)
    return bot.shown(place)[before]


@asynccontextmanager
async def on_discord(
    folder: Path,
    discord: DiscordServer,
    anna: User,
    *,
    model: FakeModel | None = None,
    patience: float = 10.0,
    silence: float = 48.0,
    allow: tuple[str, ...] = (),
    admins: tuple[str, ...] = (),
    pairing: bool = False,
    points: Points = ignore_points,
    with_tools: Sequence[Tool] = (),
    clock: Clock | None = None,
    connected: bool = True,
    token: str = "",
    store: Store | None = None,
    rules: Mapping[str, Any] | None = None,
    entry: ModelEntry | None = None,
    **sections: Any,
) -> AsyncIterator[Bot]:
    """A gateway on this Discord, until the block ends. `rules`: of the section `adapters.discord`."""
    model, clock = model or FakeModel(), clock or SystemClock()
    access = AccessSettings(allow=(f"discord:{anna.id}", *allow), admins=admins, pairing=pairing)
    config = config_in(folder, access=access, **({"model": entry} if entry else {}), **sections)
    menu = [each.entry for each in all_commands().commands]
    adapter = DiscordAdapter(
        DiscordSettings(token=SecretStr(token or discord.token), base_url=discord.api_url, **(rules or {})),
        host(clock, menu=menu, listens=listens(config, "discord"), shows=shows(config, "discord")),
        patience=patience,
        silence=silence,
    )
    parts = bootstrap.Parts(providers={"offline": model}, points=points, tools=with_tools, clock=clock, store=store)
    gateway = bootstrap.build(config, [adapter], parts)
    serving = asyncio.create_task(gateway.run())
    bot = Bot(discord=discord, gateway=gateway, adapter=adapter, model=model, anna=anna, serving=serving)
    try:
        if connected:
            await bot.until(lambda: discord.connected or serving.done())
        yield bot
    finally:
        gateway.stop()
        async with asyncio.timeout(PATIENCE):
            await serving


def careless(discord: DiscordServer) -> Iterator[str]:
    """The bot's texts that do not say whom they ping, and messages without a nonce."""
    for call in (each for each in discord.journal.calls if each.done):
        body = call.parameters.get("body") or {}
        said = body.get("data") or body if isinstance(body, dict) else {}
        if "content" in said and "allowed_mentions" not in said:
            yield f"{call.method} says not whom it pings: {said['content']}"
        if call.method == "POST /channels/{channel}/messages" and not (said.get("nonce") and said.get("enforce_nonce")):
            yield f"{call.method} may be shown twice: {said.get('content')}"
