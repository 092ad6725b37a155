"""When the bot leaves a voice channel by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from adapters.discord.rooms import ALONE_SECONDS, Rooms
from tests.support.fakes import ManualClock


class Server:
    """A server in whose voice channel the bot is; `empty`: nobody else is."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.left = clock, list[int]()
        self.rooms = Rooms(Mock(), clock, AsyncMock(), Mock())
        self.room: Any = SimpleNamespace(ears=None, is_elsewhere=False, is_empty=False, alone=None)
        self.rooms._rooms[1] = self.room
        self.rooms._leave = AsyncMock(side_effect=self._leave)  # type: ignore[method-assign]

    async def _leave(self, guild: int) -> None:
        self.left.append(guild)
        self.rooms._rooms.pop(guild, None)

    async def change(self, *, empty: bool) -> None:
        """Somebody comes, or the last one goes."""
        self.room.is_empty = empty
        self.rooms._look(1)
        await self.clock.settle()


@pytest.fixture
def server(clock: ManualClock) -> Server:
    """The bot has just come."""
    return Server(clock)


async def test_it_leaves_once_it_has_been_alone_for_a_while(server: Server) -> None:
    await server.change(empty=True)
    await server.clock.advance(ALONE_SECONDS - 0.1)
    assert server.left == []
    await server.change(empty=True)  # another look
    await server.clock.advance(0.1)
    assert server.left == [1]


async def test_it_stays_if_somebody_comes_back(server: Server) -> None:
    await server.change(empty=True)
    await server.change(empty=False)
    await server.clock.advance(2 * ALONE_SECONDS)
    assert server.left == []
    await server.change(empty=True)
    await server.clock.advance(ALONE_SECONDS)
    assert server.left == [1]


async def test_where_nobody_was_told_that_it_listens_it_leaves_at_once(server: Server) -> None:
    server.room.ears, server.room.is_elsewhere = Mock(aclose=AsyncMock()), True
    await server.change(empty=False)
    assert server.left == [1]
    server.room.ears.aclose.assert_awaited_once()


async def test_at_the_end_it_leaves_all_and_waits_for_nothing_any_more(server: Server) -> None:
    server.rooms._rooms[2] = SimpleNamespace()  # type: ignore[assignment]
    await server.change(empty=True)
    await server.rooms.aclose()
    assert (sorted(server.left), server.clock.pending) == ([1, 2], ())
    await server.rooms.aclose()
