"""A bot that many people talk to at once goes on answering, however its calls are ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from adapters.telegram.adapter import TelegramAdapter
from gateway.domain.chat import ChatAddress, Outbound, SessionKey
from gateway.providers.base import ModelEvent, ModelRequest, ModelSpec
from gateway.runtime.clock import SystemClock
from tests.bench.telegram_people import talk
from tests.emulators.telegram import TelegramServer
from tests.support.hosts import host
from tests.support.model import PATIENCE, FakeModel
from tests.support.telegram_live import left_in_use, on_telegram, settings_on

CHATS = 100
TURNS = 40  # of the loop: a call on loopback has left by then


class Slow(FakeModel):
    """Answers after so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    async def stream(self, spec: ModelSpec, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        await SystemClock().sleep(self._seconds)
        async for event in super().stream(spec, request):
            yield event


@pytest.mark.parametrize("each", [4, pytest.param(15, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seconds", [pytest.param(0.0, marks=pytest.mark.slow), 0.1])
async def test_everybody_is_answered_and_no_connection_is_left_taken(tmp_path: Path, seconds: float, each: int) -> None:
    async with TelegramServer(limits=None) as telegram:
        people = [telegram.people.person(f"P{number}") for number in range(CHATS)]
        async with on_telegram(tmp_path, telegram, people[0], allow=("telegram:*",), model=Slow(seconds)) as bot:
            async with asyncio.timeout(5 * PATIENCE):
                await talk(telegram, people, each)
            await bot.quiet()
            (adapter,) = bot.gateway.readers.adapters.values()
            assert isinstance(adapter, TelegramAdapter)
            assert await left_in_use(adapter) == 0
            assert [len(telegram.shown(telegram.people.private(person))) for person in people] == [each] * CHATS


async def test_typing_that_is_over_at_once_costs_no_connection() -> None:
    async with TelegramServer(limits=None) as telegram:
        anna = telegram.people.person("Anna")
        to = ChatAddress(platform="telegram", chat=str(anna.id))
        telegram.people.say(telegram.people.private(anna), anna, "hello")
        for moment in range(TURNS):
            adapter = TelegramAdapter(settings_on(telegram), host(), paced=False)
            await adapter.typing(to, active=True)
            for _ in range(moment):
                await asyncio.sleep(0)
            await adapter.typing(to, active=False)
            assert await left_in_use(adapter) == 0, moment
            await adapter.send(
                Outbound(id="o", key=SessionKey(platform="telegram", chat=to.chat), to=to, kind="notice", text="hi")
            )
            await adapter.aclose()
