"""The news between processes whose store is a PostgreSQL database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from msgspec.json import encode

from tests.support.fakes import ManualClock


class Told:
    """A place of which nothing but the news is there."""

    errors: tuple[type[Exception], ...] = (ConnectionError,)
    again: tuple[type[Exception], ...] = ()
    name = "a server"

    def __init__(self) -> None:
        self.says: asyncio.Queue[str | None] = asyncio.Queue()
        self.says.put_nowait(None)

    def connect(self, *, writes: bool) -> Any:
        connection = Mock(is_closed=False)
        connection.now.return_value = 7.0
        return connection

    async def news(self) -> AsyncIterator[str | None]:
        while True:
            yield await self.says.get()


async def test_a_process_hears_the_news_of_others_and_not_its_own_again(monkeypatch: pytest.MonkeyPatch) -> None:
    module = pytest.importorskip("gateway.store.postgres.backend")
    place, heard = Told(), asyncio.Queue[tuple[str, ...]]()
    backend = module.PostgresBackend(place, clock=ManualClock(), life=10.0, waits=False, told=lambda text: None)
    monkeypatch.setattr(backend, "unindexed", AsyncMock(return_value=0))
    owner = await backend.open(heard.put_nowait, Mock())
    try:
        assert await heard.get() == ("time", "7.0")
        place.says.put_nowait(encode([owner, ("ready", "own")]).decode())
        place.says.put_nowait(encode(["another", ("ready", "a"), ("signal", "b", "stop")]).decode())
        assert [await heard.get(), await heard.get()] == [("ready", "a"), ("signal", "b", "stop")]
    finally:
        await backend.aclose()
