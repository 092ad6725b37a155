"""Which partitions may have a lane that waits for a worker, and since when.

A bell says "look there", never more: whoever looks may find that another process was quicker. Used
from the event loop only.
"""

from __future__ import annotations

import asyncio


class ReadyPartitions:
    """Partitions to look into, the one whose lane has waited longest first.

    Suspects (items that were running at several crashes) ring apart: while this process runs one, it
    may not claim another, and what rings for them is kept until then.
    """

    def __init__(self) -> None:
        self._rung: dict[int, int] = {}  # partition → the lowest number that was rung for it
        self._kept: dict[int, int] = {}  # the same, for suspects
        self._suspect_runs = False
        self._heard = asyncio.Event()

    def add(self, partition: int, number: int) -> None:
        """The lane that was scheduled with this number waits in this partition."""
        self._rung[partition] = min(number, self._rung.get(partition, number))
        self._heard.set()

    def add_suspect(self, partition: int, number: int) -> None:
        """The same of a suspect."""
        if self._suspect_runs:
            self._kept[partition] = min(number, self._kept.get(partition, number))
        else:
            self.add(partition, number)

    def take_suspect(self) -> bool:
        """Ask to run a suspect; if so, none other may until `suspect_ended`."""
        taken = not self._suspect_runs
        self._suspect_runs = True
        return taken

    def suspect_ended(self) -> None:
        """Another suspect may be claimed."""
        self._suspect_runs = False
        kept, self._kept = self._kept, {}
        for partition, number in kept.items():
            self.add(partition, number)

    async def next(self) -> tuple[int, int]:
        """Wait for a partition that rang, and silence it: (partition, its number). Safe to cancel."""
        while not self._rung:
            self._heard.clear()
            await self._heard.wait()
        partition = min(self._rung, key=self._rung.__getitem__)
        return partition, self._rung.pop(partition)
