"""A platform that cannot be reached: its adapter knows since when, and that it is over."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress

from pydantic import SecretStr

from adapters.discord.adapter import DiscordAdapter
from adapters.discord.platform import DiscordSettings
from adapters.telegram.adapter import TelegramAdapter
from gateway.domain.adapter import Accepted, Adapter, TellsReach
from gateway.domain.chat import Inbound
from tests.emulators.faults import Disconnect
from tests.emulators.telegram.server import TelegramServer
from tests.support.fast_clock import FastClock
from tests.support.hosts import host
from tests.support.redis_server import free_port
from tests.support.telegram_live import settings_on
from tests.support.waiting import eventually


class Blank:
    """A notebook with nothing in it."""

    async def read(self) -> Mapping[str, str]:
        return {}

    async def write(self, changes: Mapping[str, str | None]) -> None: ...


@asynccontextmanager
async def reading(adapter: Adapter) -> AsyncIterator[None]:
    """Read the platform in the block."""

    async def accept(batch: Sequence[Inbound]) -> list[Accepted]:
        return []

    task = asyncio.create_task(adapter.run(accept))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await adapter.aclose()


async def test_telegram_before_the_first_answer_and_in_the_middle() -> None:
    nowhere = f"http://127.0.0.1:{free_port()}/bot"
    clock = FastClock(pace=10.0)
    async with TelegramServer(limits=None, clock=clock) as telegram:
        adapter = TelegramAdapter(settings_on(telegram, base_url=nowhere), host(clock), paced=False)
        assert isinstance(adapter, TellsReach)
        async with reading(adapter):
            await eventually(lambda: adapter.unreached_since is not None)
        adapter = TelegramAdapter(settings_on(telegram), host(clock), paced=False)
        async with reading(adapter):
            await eventually(lambda: bool(list(telegram.journal.of("getUpdates"))))
            assert adapter.unreached_since is None
            telegram.faults.add(Disconnect(), method="getUpdates")
            telegram.people.say(
                telegram.people.private(anna := telegram.people.person("Anna", started=True)), anna, "x"
            )
            await eventually(lambda: adapter.unreached_since is not None)
            await eventually(lambda: adapter.unreached_since is None)


async def test_telegram_beside_another_program_that_polls() -> None:
    async with TelegramServer(limits=None) as telegram:
        ours, other = (TelegramAdapter(settings_on(telegram), host(), paced=False) for _ in range(2))
        async with reading(ours):
            await eventually(lambda: bool(list(telegram.journal.of("getUpdates"))))
            assert ours.unreached_since is None
            async with reading(other):
                await eventually(lambda: ours.unreached_since is not None)


async def test_discord_before_the_first_answer() -> None:
    settings = DiscordSettings(token=SecretStr("not.a.token"), base_url=f"http://127.0.0.1:{free_port()}/api/v10")
    adapter = DiscordAdapter(settings, host())
    adapter.notebook = Blank()
    assert isinstance(adapter, TellsReach)
    async with reading(adapter):
        await eventually(lambda: adapter.unreached_since is not None)
