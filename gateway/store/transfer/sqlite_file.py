"""A SQLite file as the source or the target of a migration."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import apsw

from gateway.runtime.errors import StoreLocked, StoreOutdated, StoreUnavailable
from gateway.store.sqlite import mark, search
from gateway.store.sqlite.connection import Connection, change, connect_reader, connect_writer, one, unavailable
from gateway.store.sqlite.copying import fill
from gateway.store.sqlite.database import MOVED
from gateway.store.sqlite.lock import LockFile
from gateway.store.sqlite.migrations import check_known, check_readable, migrate, tables
from gateway.store.sqlite.records import FileRecords, WrittenRecords
from gateway.store.steps import copying
from gateway.store.steps.copying import Copied

T = TypeVar("T")


class SqliteSource:
    """A file whose lock is held while it is read; it is not written to. One of an earlier version is read from a copy
    beside it that is brought to this one."""

    def __init__(self, path: Path) -> None:
        self.name = f"sqlite:///{path}"
        self._path = path
        self._lock = LockFile(path)
        self._connection: apsw.Connection | None = None
        self._folder: TemporaryDirectory[str] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="migration")  # closes after what it is doing

    @property
    def identity(self) -> str:
        return str(self._path.resolve())

    async def open(self) -> None:
        await self._in_thread(self._open)

    def _open(self) -> None:
        if not self._path.exists():
            raise StoreUnavailable(f"There is no store at {self._path}. Check the address.")
        self._take()
        self._connection = connect_reader(self._path)
        mark.check_whole(self._connection, self._path)
        try:
            check_readable(self._connection, self._path)
        except StoreOutdated:
            if not self._connection.pragma("user_version"):
                raise  # it is empty
            self._connection.close()
            self._connection = self._brought_forward()

    def _brought_forward(self) -> apsw.Connection:
        self._folder = TemporaryDirectory(prefix=f"{self._path.name}{MOVED}", dir=self._path.parent)
        copy = Path(self._folder.name, self._path.name)
        fill(self._path, copy, copy)
        connection = connect_writer(copy)
        migrate(connection, self._path)
        return connection

    def _take(self) -> None:
        try:
            self._lock.acquire()
        except StoreLocked as error:
            whose = self._lock.owner()
            raise StoreLocked(
                f"{self._path} is in use by process {whose}. Stop it, then run `legato migrate` again."
            ) from error

    async def dump(self) -> AsyncGenerator[Sequence[Copied], None]:
        pages = copying.pages([FileRecords(self._connected)])
        while page := await self._in_thread(lambda: next(pages, None)):
            yield page

    async def last_number(self) -> int:
        return await self._in_thread(FileRecords(self._connected).last_number)

    async def check(self) -> None:
        """The lock is held until `aclose`, however long that takes."""

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await self._in_thread(connection.close)
        self._thread.shutdown()
        if self._folder is not None:
            self._folder.cleanup()
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
    """A file that is made, or filled again from its start if an earlier migration left it half-filled."""

    def _open(self) -> None:
        self._take()
        if self._path.exists() and self._path.stat().st_size:
            self._look()
        self._connection = self._writing = connect_writer(self._path)
        # What is not yet on the disk when the power fails is found missing by its mark.
        change(self._writing, "PRAGMA synchronous = NORMAL")
        if (
            mark.origin_of(self._writing) is not None
        ):  # half of an earlier version's is nothing that can be brought over
            with self._writing:
                _empty(self._writing)
        migrate(self._writing, self._path)

    def _look(self) -> None:
        """Look before anything is changed. Raises StoreUnavailable."""
        reader = connect_reader(self._path)
        try:
            check_known(reader, self._path)
            if mark.origin_of(reader) is None and any(
                one(reader, f'SELECT 1 FROM "{each}" LIMIT 1') for each in tables(reader)
            ):
                raise StoreUnavailable(
                    f"{self._path} is not empty. A migration needs an empty store, so choose another file or move "
                    "that one away."
                )
        finally:
            reader.close()

    async def begin(self, origin: str) -> None:
        def work() -> None:
            with self._writing:
                _empty(self._writing)
                mark.mark(self._writing, origin)
                search.renew_some(self._writing)  # of no messages: so the entries to come are all of this version
            self._flush()
            self._written = WrittenRecords(self._writing)

        await self._in_thread(work)

    async def restore(self, page: Sequence[Copied]) -> None:
        def work() -> None:
            with self._writing:
                self._written.run(copying.put, page)
                search.enter_stored(self._writing)
            self._writing.stored = ()

        await self._in_thread(work)

    async def complete(self, last_number: int) -> None:
        def work() -> None:
            change(self._writing, "UPDATE meta SET value = ? WHERE name = 'numbers'", (last_number,))
            self._flush()

        await self._in_thread(work)

    async def publish(self) -> None:
        def work() -> None:
            with self._writing:
                mark.unmark(self._writing)
            self._flush()

        await self._in_thread(work)

    def _flush(self) -> None:
        """All that was written is on the disk when this returns."""
        change(self._writing, "PRAGMA wal_checkpoint(TRUNCATE)")


def _empty(connection: Connection) -> None:
    for table in tables(connection):
        change(connection, f'DELETE FROM "{table}"')
    change(connection, "INSERT INTO message_search(message_search) VALUES ('delete-all')")
