"""A whole gateway with a bot on a real Matrix server, or the emulated one: what people see is what is looked at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from adapters.matrix.adapter import MatrixAdapter
from adapters.matrix.platform import MatrixSettings
from gateway.agent.tools.base import Tool
from gateway.app import build as bootstrap
from gateway.app.plugins import all_commands
from gateway.domain.place import NOT_SAID, ListenRules
from gateway.domain.turn import BUSY
from gateway.people.access import AccessSettings
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from tests.support.gateway import config_in
from tests.support.hosts import host
from tests.support.live_bot import LiveBot
from tests.support.model import PATIENCE, FakeModel


@dataclass(slots=True, kw_only=True)
class Bot(LiveBot):
    """A running gateway and its account on the server. Anna may talk to it, and whoever `allow` adds."""

    adapter: MatrixAdapter
    account: Any
    anna: Any
    chat: str = ""

    def shown(self, chat: Any = None) -> list[str]:
        """Return the present texts of the bot's messages as Anna sees them, except that it is busy."""
        return [text for text in self.anna.shown(chat or self.chat, self.account.id) if text != BUSY]

    async def until(self, condition: Callable[[], Any]) -> Any:
        """What the condition returns, once that is something. Fails after `PATIENCE`."""
        return await self.anna.until(condition)

    async def says(self, text: str, chat: str = "", **content: Any) -> str:
        """Anna writes."""
        return str(await self.anna.says(chat or self.chat, text, **content))

    async def opens(self) -> str:
        """Anna begins a chat of two, and the bot comes."""
        self.chat = str(await self.anna.opens(self.account.id, direct=True))
        await self.comes(self.chat)
        return self.chat

    async def comes(self, chat: str) -> None:
        """Return once the bot is in a room."""
        await self.until(lambda: self.is_in(chat))

    async def reads(self, chat: str, event: str) -> None:
        """Return once Anna sees that the bot has read as far as this message: then all before it is stored."""
        await self.until(
            lambda: any(
                self.account.id in each.get(event, {}).get("m.read", {}) for each in self._signs(chat, "m.receipt")
            )
        )

    async def types(self, chat: str) -> None:
        """Return once Anna sees that the bot types."""
        await self.until(lambda: any(self.account.id in each["user_ids"] for each in self._signs(chat, "m.typing")))

    def _signs(self, chat: str, kind: str) -> list[Any]:
        return [each["content"] for each in self.anna.seen.get(chat, ()) if each["type"] == kind]

    def is_in(self, chat: str) -> bool:
        """Say whether Anna saw the bot come into a room."""
        came = self.anna.events(chat, self.account.id, "m.room.member")
        return bool(came) and came[-1]["content"]["membership"] == "join"


@asynccontextmanager
async def on_matrix(
    folder: Path,
    synapse: Any,
    *,
    account: Any = None,
    anna: Any = None,
    model: FakeModel | None = None,
    allow: tuple[str, ...] = (),
    rules: Mapping[str, Any] | None = None,
    listens: ListenRules = NOT_SAID,
    store: Store | None = None,
    home: Path | None = None,
    with_tools: Sequence[Tool] = (),
    **sections: Any,
) -> AsyncIterator[Bot]:
    """A gateway on this server, until the block ends. `rules`: of the section `adapters.matrix`."""
    model, clock = model or FakeModel(), SystemClock()
    account, anna = account or synapse.person("Legato"), anna or synapse.person("Anna")
    access = AccessSettings(allow=(f"matrix:{anna.id}", *allow), pairing=False)
    settings = {"user": account.id, "password": SecretStr("secret"), "homeserver": synapse.url, **(rules or {})}
    menu = [each.entry for each in all_commands().commands]
    given = host(clock, menu=menu, listens=listens, home=home or folder / "home")
    adapter = MatrixAdapter(MatrixSettings(**settings), given)
    parts = bootstrap.Parts(providers={"offline": model}, clock=clock, store=store, tools=with_tools)
    gateway = bootstrap.build(config_in(folder, access=access, **sections), [adapter], parts)
    serving = asyncio.create_task(gateway.run())
    bot = Bot(adapter=adapter, gateway=gateway, account=account, model=model, anna=anna, serving=serving)
    try:
        yield bot
    finally:
        gateway.stop()
        async with asyncio.timeout(PATIENCE):
            await serving
