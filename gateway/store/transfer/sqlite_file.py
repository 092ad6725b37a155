"""A SQLite file as the source or the target of a migration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import apsw

from gateway.runtime.errors import StoreLocked, StoreUnavailable
from gateway.store.shared.facts import Record
from gateway.store.sqlite import former, mark, search
from gateway.store.sqlite.connection import change, connect_reader, connect_writer, one, unavailable
from gateway.store.sqlite.holdings import tables
from gateway.store.sqlite.lock import LockFile
from gateway.store.sqlite.migrations import COLUMNS, check_known, check_readable, empty, migrate
from gateway.store.sqlite.records import FileRecords
from gateway.store.steps.facts import dump

T = TypeVar("T")


class SqliteSource:
    """A file whose lock is held while it is read; it is not written to."""

    def __init__(self, path: Path) -> None:
        self.name = f"sqlite:///{path}"
        self._path = path
        self._lock = LockFile(path)
        self._connection: apsw.Connection | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="migration")  # closes after what it is doing

    @property
    def identity(self) -> str:
        return str(self._path.resolve())

    async def open(self) -> None:
        await self._in_thread(self._open)

    def _open(self) -> None:
        if not self._path.exists():
            raise StoreUnavailable(f"There is no store at {self._path}: check the address.")
        self._take()
        self._connection = connect_reader(self._path)
        mark.check_whole(self._connection, self._path)
        check_readable(self._connection, self._path)

    def _take(self) -> None:
        try:
            self._lock.acquire()
        except StoreLocked as error:
            whose = self._lock.owner()
            raise StoreLocked(
                f"{self._path} is in use by process {whose}: stop it, then run `legato migrate` again."
            ) from error

    async def dump(self, now: float) -> AsyncGenerator[Sequence[Record], None]:
        pages = self._pages(now)
        while page := await self._in_thread(lambda: next(pages, None)):
            yield page

    def _pages(self, now: float) -> Iterator[Sequence[Record]]:
        return dump(FileRecords(self._connected))

    async def check(self) -> None:
        """The lock is held until `aclose`, however long that takes."""

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._in_thread(connection.close)
        self._thread.shutdown()
        self._lock.release()

    @property
    def _connected(self) -> apsw.Connection:
        if self._connection is None:
            raise StoreUnavailable("The store is closed.")
        return self._connection

    async def _in_thread(self, call: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call)
        except apsw.Error as error:
            raise unavailable(error, self._path) from error


class SqliteTarget(SqliteSource):
    """A file that is made, or filled again from its start if an earlier migration left it half-filled. It is filled as
    a file of the layout before there were tables of kinds, and brought to this version when all is there."""

    def _open(self) -> None:
        self._take()
        if self._path.exists() and self._path.stat().st_size:
            self._look()
        self._connection = connect_writer(self._path)
        empty(self._connection)
        former.prepare(self._connection)
        # What is not yet on the disk when the power fails is found missing by its mark.
        change(self._connection, "PRAGMA synchronous = NORMAL")
        migrate(self._connection, self._path, to=len(COLUMNS))
        former.widen(self._connection)

    def _look(self) -> None:
        """Look before anything is changed. Raises StoreUnavailable."""
        reader = connect_reader(self._path)
        try:
            check_known(reader, self._path)
            if mark.origin_of(reader) is None and any(
                one(reader, f"SELECT 1 FROM {each} LIMIT 1") for each in tables(reader)
            ):
                raise StoreUnavailable(
                    f"{self._path} is not empty: a migration fills an empty store, so choose another file or move "
                    "that one away."
                )
        finally:
            reader.close()

    def _pages(self, now: float) -> Iterator[Sequence[Record]]:
        return former.dump(self._connected, now)

    async def begin(self, origin: str) -> None:
        def work() -> None:
            with self._connected as connection:
                if mark.origin_of(connection) is not None:
                    _empty(connection)
                mark.mark(connection, origin)
                search.renew_some(connection)  # of no messages: so the entries to come are all of this version
            self._flush()

        await self._in_thread(work)

    async def restore(self, page: Sequence[Record]) -> None:
        await self._in_thread(lambda: former.restore(self._connected, page))

    async def complete(self) -> None:
        await self._in_thread(self._flush)

    async def publish(self) -> None:
        def work() -> None:
            with self._connected:
                mark.unmark(self._connected)
            migrate(self._connected, self._path)
            self._flush()

        await self._in_thread(work)

    def _flush(self) -> None:
        """All that was written is on the disk when this returns."""
        change(self._connected, "PRAGMA wal_checkpoint(TRUNCATE)")


def _empty(connection: apsw.Connection) -> None:
    for table in tables(connection):
        change(connection, f"DELETE FROM {table}")
    change(connection, "INSERT INTO message_search(message_search) VALUES ('delete-all')")
    change(connection, "DELETE FROM sqlite_sequence")
