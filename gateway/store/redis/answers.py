"""The answers on a connection that redis-py has opened. From then on its layers are left out: they would take eight
calls for each answer, and two futures and a timer for each batch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from hiredis import Reader
from redis.asyncio.connection import AbstractConnection, DefaultParser
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import InvalidResponse

NONE: Final = object()  # no whole answer is there yet


class Answers(asyncio.Protocol):
    """Sends commands and reads their answers. `timeout`: seconds that the answers to all that is sent at a time may
    take; `gets` gives the next one, or the error that the server gave in its place, or NONE."""

    def __init__(self, connection: AbstractConnection, timeout: float) -> None:
        writer = connection._writer
        assert writer is not None
        self._connection = connection
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        parser = Reader(
            protocolError=InvalidResponse,
            replyError=DefaultParser.parse_error,
            encoding="utf-8",
            errors="surrogateescape",
            notEnoughData=NONE,
        )
        self.gets: Final[Callable[[], Any]] = parser.gets
        self._feed = parser.feed
        self._waits = False  # for answers
        self._more = self._loop.create_future()  # bytes came, or trouble
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._trouble: Exception | None = None
        self.is_cut = False  # there will be no further answer
        self._transport = writer.transport
        self._transport.set_protocol(self)
        if self._transport.is_closing():
            self.connection_lost(None)

    def ask(self, packed: bytes) -> None:
        """Send commands."""
        self._waits = True
        self._due = self._loop.time() + self._timeout
        if self._timer is None:  # else it looks at the new time when it goes off
            self._timer = self._loop.call_at(self._due, self._look)
        self._transport.write(packed)

    def more(self) -> asyncio.Future[None]:
        """Done as soon as bytes come. Raises UNREACHABLE where none will come."""
        if self._trouble is not None:
            raise self._trouble
        self._more = self._loop.create_future()
        return self._more

    def rest(self) -> None:
        """All answers are there."""
        self._waits = False

    async def aclose(self) -> None:
        """Hang up."""
        if self._timer is not None:
            self._timer.cancel()
        await self._connection.disconnect(nowait=True)

    # -- what the loop calls ----------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self._feed(data)
        if not self._more.done():
            self._more.set_result(None)

    def eof_received(self) -> None:
        """The server has closed its side. Known at once, and not only when the transport is closed: a job that is sent
        in between would be in doubt."""
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """None will come any more."""
        self._trouble = self._trouble or exc or RedisConnectionError("Connection closed by server.")
        self.is_cut = True
        if not self._more.done():
            self._more.set_result(None)

    def _look(self) -> None:
        self._timer = None
        if self._waits and self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._look)
        elif self._waits:
            self.connection_lost(TimeoutError())
