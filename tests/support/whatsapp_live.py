"""A whole gateway with a bot on the emulated WhatsApp: what people see is what is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from adapters.whatsapp.adapter import WhatsAppBot
from adapters.whatsapp.platform import WhatsAppSettings
from gateway.agent.tools.base import Tool
from gateway.app import build as bootstrap
from gateway.domain.chat import OutboundState
from gateway.domain.turn import BUSY
from gateway.people.access import AccessSettings
from gateway.runtime.clock import Clock
from gateway.store.port import Store
from tests.emulators.whatsapp import Message, Person, WhatsAppServer
from tests.support.gateway import config_in
from tests.support.hosts import host
from tests.support.live_bot import LiveBot
from tests.support.model import PATIENCE, FakeModel
from tests.support.redis_server import free_port
from tests.support.waiting import pauses


@dataclass(slots=True, kw_only=True)
class Bot(LiveBot):
    """A running gateway and the WhatsApp that it is on. Anna may talk to it, and whoever `allow` adds."""

    whatsapp: WhatsAppServer
    adapter: WhatsAppBot
    anna: Person

    def says(self, text: str, person: Person | None = None, **how: Any) -> Message:
        """Anna writes."""
        return self.whatsapp.say(person or self.anna, text, **how)

    def shown(self, chat: Any = None) -> list[str]:
        """Return the texts of the bot's messages to a person, except that it is busy."""
        return [text for text in self.whatsapp.shown(chat or self.anna) if text != BUSY]

    async def until(self, condition: Callable[[], Any]) -> None:
        """Return once it holds. Fails after `PATIENCE`."""
        async with asyncio.timeout(PATIENCE):
            await self.whatsapp.until(condition)

    async def until_withheld(self, count: int) -> None:
        """Return once so many rows wait for somebody to write."""
        async with asyncio.timeout(PATIENCE):
            pause = pauses()
            while True:
                if len(await self.gateway.store.outbox(None, 9, (OutboundState.WITHHELD,))) >= count:
                    return
                await asyncio.sleep(next(pause))


def settings_for(whatsapp: WhatsAppServer, port: int, **rules: Any) -> WhatsAppSettings:
    """The section of a bot on this server."""
    given = whatsapp.settings
    return WhatsAppSettings(
        enabled=True,
        number=given.numbers[0],
        numbers=given.numbers[1:],
        token=SecretStr(given.token),
        secret=SecretStr(given.secret),
        url=f"http://127.0.0.1:{port}/whatsapp",
        port=port,
        base_url=whatsapp.api_url,
        **rules,
    )


@asynccontextmanager
async def on_whatsapp(
    folder: Path,
    whatsapp: WhatsAppServer,
    anna: Person,
    *,
    model: FakeModel | None = None,
    patience: float = 10.0,
    allow: tuple[str, ...] = (),
    pairing: bool = False,
    admins: tuple[str, ...] = (),
    with_tools: Sequence[Tool] = (),
    clock: Clock | None = None,
    paced: bool = False,
    port: int = 0,
    store: Store | None = None,
    rules: Mapping[str, Any] | None = None,
    **sections: Any,
) -> AsyncIterator[Bot]:
    """A gateway on this WhatsApp, until the block ends. `rules`: of the section `adapters.whatsapp`."""
    model, clock = model or FakeModel(), clock or whatsapp.clock
    access = AccessSettings(allow=(f"whatsapp:{anna.address}", *allow), admins=admins, pairing=pairing)
    config = config_in(folder, access=access, **sections)
    settings = settings_for(whatsapp, port or free_port(), **(rules or {}))
    adapter = WhatsAppBot(settings, host(clock), patience=patience, paced=paced)
    parts = bootstrap.Parts(providers={"offline": model}, tools=with_tools, clock=clock, store=store)
    gateway = bootstrap.build(config, [adapter], parts)
    serving = asyncio.create_task(gateway.run())
    bot = Bot(whatsapp=whatsapp, gateway=gateway, adapter=adapter, model=model, anna=anna, serving=serving)
    try:
        yield bot
    finally:
        gateway.stop()
        async with asyncio.timeout(PATIENCE):
            await serving
