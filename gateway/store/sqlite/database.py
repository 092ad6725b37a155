"""The file in use: its lock, its connections and the threads that use them.

There are four connections. One writes, in the writer's thread. One reads single rows on the event loop, because a look
into the page cache is cheaper than a change of threads. One is for queries that may take long, in a thread of its own.
One is for searches, in another thread: they rank megabytes of text, and nobody's transcript should wait for that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeAlias, TypeVar

import apsw
import structlog

from gateway.runtime.errors import StoreError, StoreUnavailable
from gateway.store.sqlite import search
from gateway.store.sqlite.connection import Connection, check_undamaged, connect_reader, connect_writer, unavailable
from gateway.store.sqlite.lock import LockFile
from gateway.store.sqlite.mark import check_whole
from gateway.store.sqlite.migrations import VERSION, check_readable, migrate, next_generation
from gateway.store.sqlite.writer import Writer

log = structlog.get_logger(__name__)

_COPYING = "gateway.store.sqlite.copying"  # which few starts need

T = TypeVar("T")
P = ParamSpec("P")

Query: TypeAlias = Callable[Concatenate[apsw.Connection, P], T]

# Connections that read: for single rows, for long queries, for searches.
HERE, _READER, _SEARCHER = range(_READERS := 3)
_COPY = ".version-"  # and a number: the end of the name of a copy that an upgrade kept
_ASIDE = ".before-"  # and a time: the same of the folder that a restore kept
REHEARSED, MOVED = ".rehearsed-", ".moved-"  # and letters: of folders with a copy that a block needs


def _nothing(_: str) -> None:
    """The default of a callback."""


def kept_copies(path: Path) -> list[Path]:
    """Return the copies of a store's file that upgrades kept, and the folders that restores kept."""
    found = sorted(path.parent.glob(f"{path.name}{_COPY}*"))
    aside = sorted(path.parent.glob(f"{path.name}{_ASIDE}*Z"))
    return [*(each for each in found if each.suffix.removeprefix(_COPY).isdecimal()), *aside]


def left_copies(path: Path) -> list[Path]:
    """The folders with a copy of a store's file that a rehearsal or a migration uses, or left when it was killed."""
    return sorted(each for part in (REHEARSED, MOVED) for each in path.parent.glob(f"{path.name}{part}????????"))


class Database:
    """An open file. Made by `open`; `generation` tells this opening from earlier ones."""

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool,
        broken: Callable[[str], None] = _nothing,
        told: Callable[[str], None] = _nothing,
        keeps_copy: bool = True,
    ) -> None:
        self.generation = 0
        self._told = told
        self._keeps_copy = keeps_copy
        self._broken = broken
        self._path = path
        self.is_read_only = read_only
        self._lock = LockFile(path)
        self._connections: list[apsw.Connection] = []
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="store-reader")
        self._searcher = ThreadPoolExecutor(1, thread_name_prefix="store-searcher")
        self._writer: Writer | None = None
        self._closed = False

    async def open(self) -> None:
        """Take the lock, migrate, connect. Raises StoreLocked or StoreUnavailable."""
        try:
            await self._in(self._reader, self._connect)
        except StoreError:
            await self.aclose()
            raise
        writing = self._connections[-1]
        if isinstance(writing, Connection):
            self._writer = Writer(writing, self._path, deferred=search.enter_stored, broken=self._broken)

    async def aclose(self) -> None:
        """Finish the writes that wait, fold the log into the file, let go of the lock. Idempotent."""
        self._closed = True
        if self._writer is not None:
            await self._writer.aclose()
        self._reader.shutdown()
        self._searcher.shutdown()
        while self._connections:
            self._connections.pop(0).close()
        self._lock.release()

    @property
    def path(self) -> Path:
        """Return the file."""
        return self._path

    @property
    def commits(self) -> int:
        """Transactions that changed something, since `open`."""
        return self._writer.commits if self._writer is not None else 0

    @property
    def is_open(self) -> bool:
        """Between `open` and `aclose`, for writing."""
        return self._writer is not None and bool(self._connections)

    @property
    def writer(self) -> Writer:
        """Raises StoreUnavailable in a store opened for reading."""
        if self._writer is None:
            raise StoreUnavailable(f"{self._path} is open for reading only.")
        return self._writer

    def on(self, reader: int, query: Query[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Run a query on a connection that reads: on `HERE`, on the event loop, one of a few rows."""
        if len(self._connections) <= reader:
            raise StoreUnavailable("The store is closed.")
        try:
            return query(self._connections[reader], *args, **named)
        except apsw.Error as error:
            # A page that is damaged stays so. Who looks on is told; a gateway would try again for ever.
            raise unavailable(error, self._path, _nothing if self.is_read_only else self._broken) from error

    async def read(self, query: Query[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Run a query of any size in the reader's thread."""
        return await self._in(self._reader, lambda: self.on(_READER, query, *args, **named))

    async def search(self, query: Query[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Run a search in the searcher's thread. It finds all that is stored by now, unless the disk is full."""
        if self._writer is not None:
            with suppress(StoreUnavailable):
                await self._writer.catch_up()
        return await self._in(self._searcher, lambda: self.on(_SEARCHER, query, *args, **named))

    async def write(self, work: Query[P, T], *args: P.args, **named: P.kwargs) -> T:
        """Run a change that nothing in memory depends on. Raises StoreUnavailable in a store opened for reading."""
        return await self.writer.run(lambda connection: work(connection, *args, **named))

    async def write_beside(self, work: Query[P, T], *args: P.args, **named: P.kwargs) -> T:
        """The same, also beside a running gateway, whose writes SQLite then holds up for a moment."""
        if not self.is_read_only:
            return await self.write(work, *args, **named)
        return await self._in(self._reader, lambda: self._written(lambda connection: work(connection, *args, **named)))

    # -- in threads -------------------------------------------------------------------------

    def _connect(self) -> None:
        if self._path.exists() and not self._path.is_file():  # SQLite would wait for ever for the writer of a pipe
            raise StoreUnavailable(f"{self._path} is not a file. Move it away, or set another store.url.")
        try:
            if self.is_read_only:
                self._connections = [connect_reader(self._path) for _ in range(_READERS)]
                check_readable(self._connections[0], self._path)
                check_whole(self._connections[0], self._path)
                return
            self._lock.acquire()
            writing = connect_writer(self._path)
            self._connections = [writing]
            if self._lock.was_left:
                check_undamaged(writing, self._path)
                self._lock.was_left = False
            check_whole(writing, self._path)
            migrate(writing, self._path, self._keep, self._brought)
            self.generation = next_generation(writing)
            self._connections = [*(connect_reader(self._path) for _ in range(_READERS)), writing]
        except apsw.CantOpenError as error:
            if self.is_read_only:
                import_module(_COPYING).check_there(self._path)
            raise unavailable(error, self._path) from error
        except apsw.Error as error:
            raise unavailable(error, self._path) from error

    def _keep(self, version: int) -> None:
        """Keep a copy of the file before it is brought to this version, where that is wanted. Raises
        StoreUnavailable."""
        copy = self._path.with_name(f"{self._path.name}{_COPY}{version}") if self._keeps_copy else None
        kept = ""
        if copy is not None:
            import_module(_COPYING).copy_store(self._path, copy)
            kept = f"; {copy} is as it was"
        # A warning, because nothing else tells a service's operator, and the copy holds what is forgotten later.
        log.warning("store_upgraded", path=str(self._path), version=version, to=VERSION, copy=copy and str(copy))
        self._told(f"Updating {self._path} from version {version} to {VERSION}{kept}.")

    def _brought(self, done: int, total: int) -> None:
        """So much of an older store is brought over: whoever waits for a long one sees it."""
        log.info("store_is_brought_over", path=str(self._path), done=done, of=total)
        self._told(f"{done:,} of about {total:,} records are updated.")

    def _written(self, work: Callable[[apsw.Connection], T]) -> T:
        try:
            connection = connect_writer(self._path)
            try:
                connection.execute("BEGIN IMMEDIATE")  # "with connection" would stop all threads while this one waits
                result = work(connection)
                connection.execute("COMMIT")
            finally:
                connection.close()
        except apsw.Error as error:
            raise unavailable(error, self._path) from error
        return result

    async def _in(self, thread: ThreadPoolExecutor, call: Callable[[], T]) -> T:
        try:
            called = asyncio.get_running_loop().run_in_executor(thread, call)
        except RuntimeError as error:  # after its shutdown the thread takes nothing
            why = "The store is closed." if self._closed else f"{self._path} cannot be read now: {error}."
            raise StoreUnavailable(why) from error
        return await called
