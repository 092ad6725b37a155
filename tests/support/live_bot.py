"""A bot on any emulated platform, as tests ask it."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gateway.app.gateway import Gateway
from gateway.domain.notes import QUOTES_END, TALK
from tests.support.model import PATIENCE, FakeModel
from tests.support.waiting import pauses


def talk_in(text: str) -> list[str]:
    """What was said around a message, as the model was shown it, without the times."""
    lines = text.partition(QUOTES_END)[0].splitlines()[1:] if text.startswith(TALK) else []
    return [line.partition(" UTC, ")[2] for line in lines]


@dataclass(slots=True, kw_only=True)
class LiveBot(ABC):
    """A running gateway on a platform."""

    gateway: Gateway
    model: FakeModel
    serving: asyncio.Task[bool]

    @abstractmethod
    def shown(self, chat: Any = None) -> list[str]:
        """Return the present texts of the bot's messages, except that it is busy."""

    @abstractmethod
    async def until(self, condition: Callable[[], Any]) -> None:
        """Return once it holds. Fails after `PATIENCE`."""

    async def until_shown(self, *texts: str, chat: Any = None) -> None:
        """Return once the bot's messages are these."""
        try:
            await self.until(lambda: self.shown(chat) == list(texts))
        except TimeoutError:
            assert self.shown(chat) == list(texts), self.shown(chat)

    async def until_ended(self) -> None:
        """Return when the gateway has ended by itself."""
        async with asyncio.timeout(PATIENCE):
            await asyncio.wait([self.serving])

    async def quiet(self) -> None:
        """Return when nothing is accepted, running or being shown any more."""
        async with asyncio.timeout(PATIENCE):
            pause = pauses()
            while True:
                status = await self.gateway.store.status()
                busy = self.gateway.lanes.active or self.gateway.outbox.in_flight
                if not (status.waiting or status.unsent or busy):
                    return
                await asyncio.sleep(next(pause))
