"""Time in the crash laboratory: it runs faster than the world's, and jumps when a schedule says so.

What the program waits for (retries, leases of accounts, looks) is seconds long; a run has few of them.
So a node's clock shows PACE seconds for each real one. The server measures its leases in real time,
and so does the store that renews them: it gets a clock that only tells the hurried hour.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import struct
import time
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import TracebackType
from typing import Final

from gateway.runtime.clock import Deadline, SystemClock

PACE: Final = 8.0
LEASE: Final = 1.5  # real seconds after which a silent process is taken for dead
# Real seconds of silence that may cost a lease. A third of it passes before it is renewed; the rest holds three.
LATE: Final = LEASE / 5
# Between attempts at an item: as the program's, but a message that kills has killed often enough after a second.
SHORT_PAUSES: Final = (0.0, 0.0, 0.5, 1.0, 2.0)
_SHIFT: Final = struct.Struct("d")


class Shift:
    """The error of a node's wall clock in seconds: a file that the laboratory writes and the node has in its memory,
    so that asking costs nothing."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_SHIFT.pack(0.0))
        descriptor = os.open(path, os.O_RDWR)
        try:
            self._memory = mmap.mmap(descriptor, _SHIFT.size)
        finally:
            os.close(descriptor)

    def seconds(self) -> float:
        """The present error."""
        return float(_SHIFT.unpack_from(self._memory)[0])

    def add(self, seconds: float) -> None:
        """Jump."""
        _SHIFT.pack_into(self._memory, 0, self.seconds() + seconds)


class _HurriedDeadline:
    def __init__(self, seconds: float) -> None:
        self._limit = SystemClock().limit(seconds / PACE)
        self._deadline: Deadline | None = None

    def extend(self, seconds: float) -> None:
        assert self._deadline is not None
        self._deadline.extend(seconds / PACE)

    async def __aenter__(self) -> _HurriedDeadline:
        self._deadline = await self._limit.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._limit.__aexit__(kind, error, trace)


class HurriedClock:
    """PACE times as fast as the world since `origin` (seconds since the epoch, the same in all nodes
    of a run), with a wall clock that `shift` makes wrong."""

    def __init__(self, origin: float, shift: Shift) -> None:
        self._origin = origin
        self._shift = shift

    def now(self) -> float:
        return self._origin + (time.time() - self._origin) * PACE + self._shift.seconds()

    def monotonic(self) -> float:
        return time.monotonic() * PACE

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / PACE)

    def limit(self, seconds: float) -> AbstractAsyncContextManager[Deadline]:
        return _HurriedDeadline(seconds)


class StoreClock(SystemClock):
    """The world's time, but for the hour, which is the node's."""

    def __init__(self, node: HurriedClock) -> None:
        self._node = node

    def now(self) -> float:
        return self._node.now()
