"""A whole gateway with a bot on the emulated Slack: what people see is what is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from adapters.slack.adapter import SlackAdapter, SlackBot, SlackEvents
from adapters.slack.platform import SlackSettings
from gateway.agent.tools.base import Tool
from gateway.app import build as bootstrap
from gateway.app.plugins import all_commands
from gateway.app.serving import listens
from gateway.domain.chat import SessionKey
from gateway.domain.turn import BUSY
from gateway.people.access import AccessSettings
from gateway.runtime.clock import Clock, SystemClock
from gateway.store.port import Store
from tests.emulators.slack import Channel, Message, SlackServer, User
from tests.support.gateway import config_in
from tests.support.hosts import host
from tests.support.live_bot import LiveBot
from tests.support.model import PATIENCE, FakeModel
from tests.support.waiting import pauses


@dataclass(slots=True, kw_only=True)
class Bot(LiveBot):
    """A running gateway and the Slack that it is on. Anna may talk to it, and whoever `allow` adds."""

    slack: SlackServer
    adapter: SlackBot
    anna: User

    @property
    def chat(self) -> Channel:
        """Anna's with the bot."""
        return self.slack.people.direct(self.anna)

    def says(self, text: str, chat: Channel | None = None, **how: Any) -> Message:
        """Anna writes."""
        return self.slack.people.say(chat or self.chat, self.anna, text, **how)

    def shown(self, chat: Any = None) -> list[str]:
        """Return the present texts of the bot's messages, except that it is busy; `chat`: a channel, or a thread's
        first message."""
        chat = chat or self.chat
        found = self.slack.shown(chat.channel, chat) if isinstance(chat, Message) else self.slack.shown(chat)
        texts = [message.visible for message in found]
        return [text for text in texts if text != BUSY]

    async def until(self, condition: Callable[[], Any]) -> None:
        """Return once it holds. Fails after `PATIENCE`."""
        async with asyncio.timeout(PATIENCE):
            await self.slack.until(condition)

    async def until_waiting(self, *texts: str) -> None:
        """Return once these texts of Anna's wait in her chat's lane."""
        key = SessionKey(platform="slack", chat=self.chat.id)
        async with asyncio.timeout(PATIENCE):
            pause = pauses()
            while True:
                waiting = await self.gateway.store.waiting(key, len(texts) + 1)
                if [item.inbound.text for item in waiting] == list(texts):
                    return
                await asyncio.sleep(next(pause))


@asynccontextmanager
async def on_slack(
    folder: Path,
    slack: SlackServer,
    anna: User,
    *,
    model: FakeModel | None = None,
    patience: float = 10.0,
    silence: float = 45.0,
    allow: tuple[str, ...] = (),
    pairing: bool = False,
    with_tools: Sequence[Tool] = (),
    clock: Clock | None = None,
    connected: bool = True,
    paced: bool = False,
    store: Store | None = None,
    rules: Mapping[str, Any] | None = None,
    **sections: Any,
) -> AsyncIterator[Bot]:
    """A gateway on this Slack, until the block ends. `rules`: of the section `adapters.slack`."""
    model, clock = model or FakeModel(), clock or SystemClock()
    access = AccessSettings(allow=(f"slack:{anna.id}", *allow), pairing=pairing)
    config = config_in(folder, access=access, **sections)
    settings = SlackSettings(
        token=SecretStr(slack.settings.token),
        app_token=SecretStr(slack.settings.app_token),
        base_url=slack.api_url,
        **(rules or {}),
    )
    menu = [each.entry for each in all_commands().commands]
    made: Any = partial(SlackAdapter, silence=silence) if settings.mode == "socket" else SlackEvents
    given = host(clock, menu=menu, listens=listens(config, "slack"))
    adapter = made(settings, given, patience=patience, paced=paced)
    parts = bootstrap.Parts(providers={"offline": model}, tools=with_tools, clock=clock, store=store)
    gateway = bootstrap.build(config, [adapter], parts)
    serving = asyncio.create_task(gateway.run())
    bot = Bot(slack=slack, gateway=gateway, adapter=adapter, model=model, anna=anna, serving=serving)
    try:
        if connected and settings.mode == "socket":
            await bot.until(lambda: slack.connected or serving.done())
        yield bot
    finally:
        gateway.stop()
        async with asyncio.timeout(PATIENCE):
            await serving
