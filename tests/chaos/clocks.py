"""Time in the crash laboratory: it runs faster than the world's, and jumps when a schedule says so.

What the program waits for (retries, leases of accounts, looks) is seconds long; a run has few of them.
So a node's clock shows PACE seconds for each real one. The server measures its leases in real time,
and so does the store that renews them: it gets a clock that only tells the hurried hour.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path
from typing import Final

from gateway.runtime.clock import SystemClock
from tests.support.fast_clock import FastClock

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


class HurriedClock(FastClock):
    """PACE times as fast as the world since `origin` (seconds since the epoch, the same in all nodes
    of a run), with a wall clock that `shift` makes wrong."""

    def __init__(self, origin: float, shift: Shift) -> None:
        super().__init__(PACE, origin)
        self._shift = shift

    def now(self) -> float:
        return super().now() + self._shift.seconds()


class StoreClock(SystemClock):
    """The world's time, but for the hour, which is the node's."""

    def __init__(self, node: HurriedClock) -> None:
        self._node = node

    def now(self) -> float:
        return self._node.now()
