"""A whole gateway with a bot on the emulated Telegram: what people see is what is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from adapters.telegram.adapter import TelegramAdapter, TelegramBot
from adapters.telegram.platform import Streaming, TelegramSettings, Webhook
from adapters.telegram.webhook import WebhookAdapter
from gateway.agent.tools.base import Tool
from gateway.app import build as bootstrap
from gateway.app.serving import listens, shows
from gateway.domain.adapter import MenuEntry
from gateway.domain.turn import BUSY
from gateway.people.access import AccessSettings
from gateway.providers.base import Provider
from gateway.providers.plugin import ModelSettings as ModelEntry
from gateway.runtime.aside import RunsAside, at_once
from gateway.runtime.points import Points, ignore_points
from tests.emulators.telegram import Chat, TelegramServer, User
from tests.support.gateway import config_in
from tests.support.hosts import host
from tests.support.live_bot import LiveBot
from tests.support.model import PATIENCE, FakeModel

MENU = [
    MenuEntry(name="help", help="Help."),
    MenuEntry(name="usage", help="Usage.", audience="person"),
    MenuEntry(name="pair", help="Pair.", audience="admins"),
]


@dataclass(slots=True, kw_only=True)
class Bot(LiveBot):
    """A running gateway and the Telegram that it is on. Anna may talk to it, and whoever `allow` adds."""

    telegram: TelegramServer
    anna: User

    @property
    def chat(self) -> Chat:
        """Anna's with the bot."""
        return self.telegram.people.private(self.anna)

    def says(self, text: str, chat: Chat | None = None, **how: Any) -> Any:
        """Anna writes."""
        return self.telegram.people.say(chat or self.chat, self.anna, text, **how)

    def answers(self, text: str, chat: Chat | None = None, *, at: int | None = None, **how: Any) -> None:
        """Anna writes after she has read what there is, which takes her a few seconds, or `at` this time."""
        world, read_at = self.telegram.cloud.world, at or self.telegram.cloud.world.date() + 5
        world.date, world_date = lambda: read_at, world.date  # type: ignore[method-assign]
        self.says(text, chat, **how)
        world.date = world_date  # type: ignore[method-assign]

    def shown(self, chat: Chat | None = None) -> list[str]:
        """Return the present texts of the bot's messages, except that it is busy."""
        texts = [message.text for message in self.telegram.shown(chat or self.chat)]
        return [text for text in texts if text != BUSY]

    def drafted(self, topic: int | None = None) -> str | None:
        """Return Anna's view of the reply that the bot is just writing."""
        draft = self.telegram.cloud.drafts(self.chat).get(topic)
        return None if draft is None else draft.text

    async def until(self, condition: Callable[[], Any]) -> None:
        """Return once it holds. Fails after `PATIENCE`."""
        async with asyncio.timeout(PATIENCE):
            await self.telegram.until(condition)


def settings_on(telegram: TelegramServer, **keys: Any) -> TelegramSettings:
    """The settings of the bot of this Telegram."""
    return TelegramSettings(**{"token": SecretStr(telegram.token), "base_url": telegram.base_url, **keys})


async def left_in_use(adapter: TelegramBot) -> int:
    """The connections of its calls, other than reading, that no call gives back."""
    transport: Any = adapter._requests[1]._client._transport
    await adapter._typing.aclose()  # the last one may be on its way
    return int(transport.in_use)


@asynccontextmanager
async def on_telegram(
    folder: Path,
    telegram: TelegramServer,
    anna: User,
    *,
    model: FakeModel | None = None,
    paced: bool = False,
    patience: float = 10.0,
    allow: tuple[str, ...] = (),
    admins: tuple[str, ...] = (),
    pairing: bool = False,
    webhook: Mapping[str, Any] | None = None,
    points: Points = ignore_points,
    entry: ModelEntry | None = None,
    provider: Provider | None = None,
    proxy: str | None = None,
    streaming: Streaming = "edits",
    page: str | None = None,
    with_tools: Sequence[Tool] = (),
    aside: RunsAside = at_once,
    **sections: Any,
) -> AsyncIterator[Bot]:
    """A gateway on this Telegram, until the block ends. It polls, or is called as `webhook` says. `entry` is the
    configured model; `provider` answers for `openai` in the place of `model`. Time is this Telegram's."""
    model, clock = model or FakeModel(), telegram.cloud.clock
    access = AccessSettings(allow=(f"telegram:{anna.id}", *allow), admins=admins, pairing=pairing)
    if entry is not None:
        sections["model"] = entry
    config = config_in(folder, access=access, **sections)
    kind = TelegramAdapter if webhook is None else WebhookAdapter
    adapter = kind(
        settings_on(telegram, proxy=proxy, streaming=streaming, page=page, webhook=Webhook(**webhook or {})),
        host(
            clock,
            menu=MENU,
            aside=aside,
            listens=listens(config, "telegram"),
            shows=shows(config, "telegram"),
            admins=[entry.removeprefix("telegram:") for entry in admins],
        ),
        paced=paced,
        patience=patience,
    )
    providers: dict[str, Provider] = {"offline": model, "openai": provider or model}
    parts = bootstrap.Parts(providers=providers, points=points, tools=with_tools, aside=aside, clock=clock)
    gateway = bootstrap.build(config, [adapter], parts)
    serving = asyncio.create_task(gateway.run())
    bot = Bot(telegram=telegram, gateway=gateway, model=model, anna=anna, serving=serving)
    seen = {call.number for call in telegram.journal.calls}
    try:
        await bot.until(lambda: any(call.number not in seen for call in telegram.journal.calls))  # its store is open
        yield bot
    finally:
        gateway.stop()
        async with asyncio.timeout(PATIENCE):
            await serving
