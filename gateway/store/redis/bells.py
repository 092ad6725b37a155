"""Which partitions may have a lane that waits for a worker, and since when.

A bell says "look there", never more: whoever looks may find that another process was quicker. Used
from the event loop only.
"""

from __future__ import annotations

import asyncio


class Bells:
    """Partitions to look into, the one whose lane has waited longest first."""

    def __init__(self) -> None:
        self._rung: dict[int, int] = {}  # partition → the lowest number that was rung for it
        self._heard = asyncio.Event()

    def ring(self, partition: int, number: int = 0) -> None:
        """The lane that was scheduled with this number waits in this partition; 0: some lane."""
        self._rung[partition] = min(number, self._rung.get(partition, number))
        self._heard.set()

    async def next(self) -> int:
        """Wait for a partition that rang, and silence it. Safe to cancel."""
        while not self._rung:
            self._heard.clear()
            await self._heard.wait()
        partition = min(self._rung, key=self._rung.__getitem__)
        del self._rung[partition]
        return partition
