"""`SqliteStore`: the store on one SQLite file, and what only a file can be asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gateway.runtime.clock import Clock
from gateway.store.port import Store
from gateway.store.records import ATTEMPT_PAUSES
from gateway.store.sqlite import forgetting
from gateway.store.sqlite.backend import SqliteBackend
from gateway.store.sqlite.connection import check_undamaged
from gateway.store.sqlite.database import Database
from gateway.store.sqlite.records import dangling


class SqliteStore(Store):
    """Everything in the SQLite file at `path`. `concurrency`: how many lanes may be claimed as their
    message is accepted, which saves a commit. `broken` is given a sentence if nothing can be written any
    more until the process starts again. A store of an earlier version is brought to this one: `told` is given a
    sentence about that, and with `keeps_copy` a copy stays beside it. With `read_only` the store opens beside
    a running gateway, without lock or migration, and writing steps raise StoreUnavailable."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        concurrency: int = 256,
        read_only: bool = False,
        attempt_pauses: Sequence[float] = ATTEMPT_PAUSES,
        broken: Callable[[str], None] = lambda _: None,
        told: Callable[[str], None] = lambda _: None,
        keeps_copy: bool = True,
    ) -> None:
        self._database = Database(path, read_only=read_only, broken=broken, told=told, keeps_copy=keeps_copy)
        backend = SqliteBackend(self._database, clock=clock)
        super().__init__(backend, clock=clock, concurrency=concurrency, attempt_pauses=attempt_pauses)

    @property
    def commits(self) -> int:
        """Transactions that changed something, since `open`."""
        return self._database.commits

    async def check(self) -> None:
        """Read the whole file. Raises StoreUnavailable where it is damaged."""
        await self._database.read(check_undamaged, self._database.path)

    async def dangling(self) -> dict[str, int]:
        """Counts of records that refer to others which are not there, by what they are; all of the file is read."""
        return await self._database.read(dangling)

    async def rewrite(self) -> None:
        """Write the whole file anew, as small as can be and without anything that once was in it. Every write waits
        for it meanwhile."""
        await self._database.writer.run_outside(forgetting.rewrite_file)
        await self._database.writer.run_outside(forgetting.fold_log)
