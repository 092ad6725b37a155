"""The backend on one SQLite file: steps run in the writer's transactions, many in each, and looks beside them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import apsw
import structlog

from gateway.domain.chat import ChatAddress, SessionKey
from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import Background
from gateway.store.backend import News, nothing
from gateway.store.draft import Draft
from gateway.store.port import Store
from gateway.store.records import ATTEMPT_PAUSES, Vector
from gateway.store.searching import Search, SearchingBackend, SearchMemory
from gateway.store.space import Caller
from gateway.store.sqlite import forgetting, search
from gateway.store.sqlite.connection import Connection, check_undamaged
from gateway.store.sqlite.database import HERE, Database
from gateway.store.sqlite.records import FileRecords, WrittenRecords, dangling
from gateway.store.sqlite.writer import Writer
from gateway.store.steps import keeping, lanes, outbox

T = TypeVar("T")

log = structlog.get_logger(__name__)

# Looks that need no transaction: they ask once, or first for what tells whether to ask more.
_ASK_ONCE: Final = frozenset((keeping.notes, lanes.signals, lanes.waiting, outbox.next_due))
_RENEWAL_PAUSE: Final = 0.02  # seconds between two steps of making search entries anew
_TOLD: Final = 10_000  # messages after which the log says how many are left
_SCRUB_PAUSE: Final = 60.0  # seconds until the log is to be emptied again, which a backup held back


class SqliteBackend(SearchingBackend):
    """The file of `database`. One that is read beside a gateway takes only the steps that may come from there."""

    is_sole = True
    listens = True  # there are none but its own
    life = 10.0

    def __init__(self, database: Database, *, clock: Clock) -> None:
        self.database = database
        self.is_beside = database.is_read_only
        self._clock = clock
        self._background = Background()
        self._hear: Callable[[News], None] = nothing
        self._owners, self._memory = search.OwnerNumbers(), SearchMemory()
        self._writer: Writer | None = None  # None: this process only reads
        self._space: WrittenRecords | None = None
        self._here: Draft | None = None  # for looks on the loop, which put nothing

    async def open(self, hear: Callable[[News], None], caller: Callable[[str], Caller]) -> str:
        self._hear = hear
        await self.database.open()
        if self.is_beside:
            return ""
        self._writer = self.database.writer
        self._space = await self._writer.run(_written)
        if await self.database.read(forgetting.owes_scrub):
            self._background.start(self.scrub(), name="scrub")
        try:
            if await self.database.read(search.is_behind):
                await self.database.write(search.enter_missed)
        except StoreUnavailable as error:  # people are answered all the same
            log.error("search_index_behind", error=str(error))
        if not await self.database.read(search.is_made) and await self.database.write(search.is_outdated):
            self._background.start(self._renew_search(), name="search index")
        return f"process {self.database.generation}"

    async def aclose(self) -> None:
        await self._background.aclose()
        await self.database.aclose()

    def run(
        self,
        step: Callable[..., T],
        *args: Any,
        done: Callable[[T], None] = nothing,
        failed: Callable[[], None] = nothing,
        abandoned: Callable[[T], None] = nothing,
    ) -> Coroutine[Any, Any, T]:
        space = self._space
        told: list[News] = []

        def work(_: apsw.Connection) -> T:
            assert space is not None
            result, told[:] = space.run(step, *args)
            return result

        def durable(result: T) -> None:
            done(result)
            for news in told:
                self._hear(news)

        writer = self._writer or self.database.writer  # which says why there is none
        return writer.run(work, done=durable, failed=failed, abandoned=abandoned, drafted=True)

    async def run_beside(self, step: Callable[..., T], *args: Any) -> T:
        """Run a step that may come from beside the file's owner, whose own steps then wait for a moment."""
        if not self.is_beside:
            return await self.run(step, *args)
        result, _ = await self.database.write_beside(lambda connection: _written(connection).run(step, *args))
        return result

    async def look(self, step: Callable[..., T], *args: Any) -> T:
        return self.database.on(HERE, self._looked, step, *args)

    async def read(self, step: Callable[..., T], *args: Any) -> T:
        """Run a step that looks at any number of records in the reader's thread."""
        return await self.database.read(_looked, step, *args)

    def _looked(self, connection: apsw.Connection, step: Callable[..., T], *args: Any) -> T:
        if self._here is None:
            self._here = Draft(FileRecords(connection))
        if step in _ASK_ONCE:
            return step(self._here, *args)
        connection.execute("BEGIN")
        try:
            return step(self._here, *args)
        finally:
            connection.execute("COMMIT")

    # -- what is left of what was forgotten ------------------------------------------------

    def is_sure(self, chat: ChatAddress) -> bool:
        return True

    async def scrub(self) -> None:
        """Leave nothing forgotten in unused parts of the file, now or as soon as a backup is done."""
        self._owners, self._memory = search.OwnerNumbers(), SearchMemory()
        if not await self._is_scrubbed():
            self._background.start_once(self._scrub_later(), name="scrub again")

    async def _scrub_later(self) -> None:
        is_scrubbed = False
        while not is_scrubbed:
            await self._clock.sleep(_SCRUB_PAUSE)
            is_scrubbed = await self._is_scrubbed()

    async def _is_scrubbed(self) -> bool:
        """Scrub, and say whether that worked. A crash in between leaves the debt."""
        first = True
        while await self.database.write(search.merge_some, first=first):
            first = False
        if await self.database.read(forgetting.is_old):
            await self.database.writer.run(forgetting.rewrite_file, outside=True)
        is_folded = await self.database.writer.run(forgetting.fold_log, outside=True)
        if is_folded:
            await self.database.write(forgetting.scrubbed)
        return is_folded

    # -- search -----------------------------------------------------------------------------

    async def _renew_search(self) -> None:
        """Make the search entries of another version anew, some at a time, so that everybody else's writes come
        between."""
        left = await self.database.read(search.left)
        log.info("search_index_outdated", left=left)
        while await self.database.write(search.renew_some):
            left -= search.RENEWED
            if left > 0 and left % _TOLD < search.RENEWED:
                log.info("search_index_outdated", left=left)
            await self._clock.sleep(_RENEWAL_PAUSE)
        self._owners, self._memory = search.OwnerNumbers(), SearchMemory()
        log.info("search_index_renewed")

    async def unindexed(self) -> int:
        return await self.database.read(search.left)

    async def _searched(self, ask: Callable[[Search], T]) -> T:
        return await self.database.search(lambda connection: ask(self._search(connection)))

    def _search(self, connection: apsw.Connection) -> Search:
        return Search(FileRecords(connection), search.FileEntries(connection, self._owners), self._memory)

    async def keep_vectors(self, model: str, key: SessionKey, kept: Mapping[str, Vector]) -> None:
        await self.database.write(lambda connection: self._search(connection).keep_vectors(model, kept))


def _written(connection: apsw.Connection) -> WrittenRecords:
    assert isinstance(connection, Connection)
    return WrittenRecords(connection)


def _looked(connection: apsw.Connection, step: Callable[..., T], *args: Any) -> T:
    """What a step finds in the file as it is at one moment."""
    connection.execute("BEGIN")
    try:
        return step(Draft(FileRecords(connection)), *args)
    finally:
        connection.execute("COMMIT")


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
        await self._database.writer.run(forgetting.rewrite_file, outside=True)
        await self._database.writer.run(forgetting.fold_log, outside=True)
