"""Time that goes by itself, several times as fast as the world's.

For what only sockets and processes can show, where no test can say when all is done and time may move on. The
program waits as it always does, and a pause of a second takes a moment. What a library or the system waits for by
itself takes as long as ever.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from types import TracebackType

from gateway.runtime.clock import Deadline, SystemClock


class _FastDeadline:
    def __init__(self, seconds: float, pace: float) -> None:
        self._pace = pace
        self._limit = SystemClock().limit(seconds / pace)
        self._deadline: Deadline | None = None

    def extend(self, seconds: float) -> None:
        assert self._deadline is not None
        self._deadline.extend(seconds / self._pace)

    async def __aenter__(self) -> _FastDeadline:
        self._deadline = await self._limit.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._limit.__aexit__(kind, error, trace)


class FastClock:
    """`pace` times as fast as the world since `origin` (seconds since the epoch; None: since it was made). All that
    wait for one another have the same one, the emulated platform too."""

    def __init__(self, pace: float = 5.0, origin: float | None = None) -> None:
        self.pace = pace
        self._origin = time.time() if origin is None else origin

    def now(self) -> float:
        return self._origin + (time.time() - self._origin) * self.pace

    def monotonic(self) -> float:
        return time.monotonic() * self.pace

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / self.pace)

    def limit(self, seconds: float) -> AbstractAsyncContextManager[Deadline]:
        return _FastDeadline(seconds, self.pace)
