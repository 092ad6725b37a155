"""The answers on a connection that redis-py has opened. From then on its layers are left out: they would take eight
calls for each answer, and two futures and a timer for each batch."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from hiredis import Reader
from redis.asyncio.connection import AbstractConnection, DefaultParser
from redis.exceptions import BusyLoadingError, InvalidResponse
from redis.exceptions import ConnectionError as RedisConnectionError

_NONE: Final = object()  # no whole answer is there yet


class Answers(asyncio.Protocol):
    """Sends commands and reads their answers. `timeout`: seconds that the answers to all that is sent at a time may
    take."""

    def __init__(self, connection: AbstractConnection, timeout: float) -> None:
        writer = connection._writer
        assert writer is not None
        self._connection = connection
        self._timeout = timeout
        self._loop = asyncio.get_running_loop()
        self._parser = Reader(
            protocolError=InvalidResponse,
            replyError=DefaultParser.parse_error,
            encoding="utf-8",
            errors="surrogateescape",
            notEnoughData=_NONE,
        )
        self._left = 0  # answers that are to come
        self._more = self._loop.create_future()  # bytes came, or trouble
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._trouble: Exception | None = None
        self._transport = writer.transport
        self._transport.set_protocol(self)
        if self._transport.is_closing():
            self.connection_lost(None)

    @property
    def is_cut(self) -> bool:
        """Whether there will be no further answer."""
        return self._trouble is not None

    def ask(self, packed: bytes, count: int) -> None:
        """Send so many commands."""
        self._left = count
        self._due = self._loop.time() + self._timeout
        if self._timer is None:  # else it looks at the new time when it goes off
            self._timer = self._loop.call_at(self._due, self._look)
        self._transport.write(packed)

    async def next(self) -> Any:
        """The next answer, or the error that the server gave in its place. Raises UNREACHABLE."""
        while (answer := self._parser.gets()) is _NONE:
            if self._trouble is not None:
                raise self._trouble
            self._more = self._loop.create_future()
            await self._more
        if isinstance(answer, RedisConnectionError) and not isinstance(answer, BusyLoadingError):
            raise answer
        self._left -= 1
        return answer

    async def aclose(self) -> None:
        """Hang up."""
        if self._timer is not None:
            self._timer.cancel()
        await self._connection.disconnect(nowait=True)

    # -- what the loop calls ----------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Bytes came."""
        self._parser.feed(data)
        self._wake()

    def eof_received(self) -> None:
        """The server has closed its side. Known at once, and not only when the transport is closed: a job that is sent
        in between would be in doubt."""
        self.connection_lost(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """None will come any more."""
        self._trouble = self._trouble or exc or RedisConnectionError("Connection closed by server.")
        self._wake()

    def _look(self) -> None:
        self._timer = None
        if self._left and self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._look)
        elif self._left:
            self.connection_lost(TimeoutError())

    def _wake(self) -> None:
        if not self._more.done():
            self._more.set_result(None)
