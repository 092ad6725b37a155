"""The one thread that writes, with group commit.

All operations that wait when the thread looks become one transaction, in which each has a SAVEPOINT of its own, so
that a failure undoes only its own operation. Callers go on when the commit is on the disk; their results are handed
to the event loop in one call, in the order of execution.

An operation is a function of the connection alone, and may run more than once. If a whole transaction fails (disk
full), its operations are tried again one by one, so that one that cannot be stored does not stop the others. State in
memory is therefore changed only by `done`, which runs on the loop after the commit, even if the caller has been
cancelled meanwhile.

Work that nobody waits for, such as the entries of a search index, is put off while operations wait, and done for many
of them at once, in a transaction of its own.

An error of any kind, in an operation, in what is done around a transaction or in a callback, is the error of that one
operation. If the thread itself cannot go on, everybody who waits is told, and so is the owner: a process whose store
never answers again is worse than one that ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, TypeVar

import apsw
import structlog
from msgspec import Struct

from gateway.runtime.errors import StoreUnavailable
from gateway.store.sqlite.connection import Connection, unavailable

log = structlog.get_logger(__name__)

T = TypeVar("T")

MAX_BATCH: Final = 256  # operations in one transaction: bounds what one failure repeats
MOST_DEFERRED: Final = 32  # messages that were stored, after which what was put off is done even while operations wait
_MOST_KEPT: Final = 1_024  # messages that are kept for another try
_MANY: Final = 3  # operations in one transaction, from which on others are waited for
_PASSES: Final = 4  # of the loop, as long as each brings more operations
_IDLE: Final = 0.05  # seconds without an operation, after which it is done

BROKEN: Final = "The part of this process that writes to {path} has ended ({error}). Start Legato again."


def _nothing(*_: Any) -> None:
    """The default of every callback."""


class _Job(Struct):
    """One operation on its way through the thread."""

    work: Callable[[apsw.Connection], Any]
    future: asyncio.Future[Any]
    done: Callable[[Any], None] = _nothing
    failed: Callable[[], None] = _nothing
    abandoned: Callable[[Any], None] = _nothing
    outside: bool = False  # of any transaction
    drafted: bool = False  # it writes nothing before all is decided
    result: Any = None
    error: BaseException | None = None


class Writer:
    """Runs operations on `connection` in a thread of its own, which starts at once.

    `deferred` is given the connection, in a transaction of its own, some time after messages were stored (its
    `stored`). `broken` is given a sentence if the thread cannot go on, or the file is damaged. To be made, used and
    closed on one event loop.
    """

    def __init__(
        self,
        connection: Connection,
        path: Path,
        *,
        deferred: Callable[[Connection], None],
        broken: Callable[[str], None] = _nothing,
    ) -> None:
        self.commits = 0  # transactions that changed something
        self._connection = connection
        self._path = path
        self._deferred = deferred
        self._deferred_until = MOST_DEFERRED  # messages
        self._broken = broken
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[_Job | None] = SimpleQueue()
        self._gathered: list[_Job] = []  # that the thread is handed next
        self._together = 0  # operations in the last transaction
        self._closing = False
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._thread = threading.Thread(target=self._serve, name="store-writer", daemon=True)
        self._thread.start()

    async def run(
        self,
        work: Callable[[apsw.Connection], T],
        *,
        done: Callable[[T], None] = _nothing,
        failed: Callable[[], None] = _nothing,
        abandoned: Callable[[T], None] = _nothing,
        drafted: bool = False,
        outside: bool = False,
    ) -> T:
        """The result of `work`, once it is durable. Raises the error of `work`, or StoreUnavailable. `drafted`: work
        that fails has hardly ever written anything by then, and needs no savepoint. `outside`: no transaction can hold
        it, such as folding the log into the file.

        On the loop, whether or not the caller still waits: `done(result)` after the commit, or
        `failed()`; then `abandoned(result)` if the caller was cancelled and will never see the result.
        """
        if self._closing:
            failed()
            raise StoreUnavailable("The store is closed.")
        future: asyncio.Future[T] = self._loop.create_future()
        job = _Job(work, future, done, failed, abandoned, outside, drafted)
        if self._together < _MANY:
            self._queue.put(job)
        else:
            # Many write: who also wants to write just now is in the same transaction, and a commit costs far more than
            # a pass of the loop.
            self._gathered.append(job)
            if len(self._gathered) == 1:
                self._loop.call_soon(self._gather, 1, 1)
        try:
            return await future
        except asyncio.CancelledError:
            # Cancelled after the result was handed over: nobody will see the result.
            if future.done() and not future.cancelled() and future.exception() is None:
                abandoned(future.result())
            raise

    def _gather(self, before: int, passes: int) -> None:
        if len(self._gathered) > before and passes < _PASSES:
            self._loop.call_soon(self._gather, len(self._gathered), passes + 1)
        else:
            self._hand_in()

    def _hand_in(self) -> None:
        for job in self._gathered:
            self._queue.put(job)
        self._gathered.clear()

    async def catch_up(self) -> None:
        """Do now what was put off, if there is something. Raises StoreUnavailable."""
        if self._connection.stored:
            await self.run(lambda _: self._work_off(), outside=True)

    async def aclose(self) -> None:
        """Finish all operations that wait and end the thread. Idempotent; the connection stays open."""
        if not self._closing:
            self._closing = True
            self._hand_in()
            self._queue.put(None)
        await asyncio.shield(self._ended)
        self._thread.join()

    # -- in the thread ----------------------------------------------------------------------

    def _serve(self) -> None:
        going, batch, outside = True, list[_Job](), list[_Job]()
        try:
            while going:
                batch, going = self._take(outside)
                if batch:
                    self._commit(batch)
                    self._hand_over(self._deliver, batch)
                    batch = []
                if len(self._connection.stored) >= (self._deferred_until if going else 1):
                    self._do_deferred()
                if outside:
                    self._run(outside)
                    self._hand_over(self._deliver, outside)
                    outside = []
        except BaseException as error:
            self._closing = True  # whoever comes from now on is refused
            self._hand_over(self._break, ([*batch, *outside], f"{type(error).__name__}: {error}"))
        self._hand_over(self._ended.set_result, None)

    def _take(self, outside: list[_Job]) -> tuple[list[_Job], bool]:
        """Wait for work: (all operations that wait by then, whether to go on after them). Work outside of any
        transaction is added to `outside`."""
        batch: list[_Job] = []
        try:
            job = self._queue.get(timeout=_IDLE if self._connection.stored else None)
        except Empty:
            self._do_deferred()
            job = self._queue.get()
        while job is not None:
            (outside if job.outside else batch).append(job)
            if len(batch) + len(outside) == MAX_BATCH:
                return batch, True
            try:
                job = self._queue.get_nowait()
            except Empty:
                return batch, True
        return batch, False

    def _do_deferred(self) -> None:
        """Do what was put off. A failure is nobody's: it is tried again after as many more messages, when nobody
        waits, or after the next start."""
        try:
            self._work_off()
        except BaseException as error:
            if self._connection.in_transaction:
                raise  # and nobody could write any more
            log.error("store_put_off", error=f"{type(error).__name__}: {error}")
            self._connection.stored = self._connection.stored[-_MOST_KEPT:]
        self._deferred_until = len(self._connection.stored) + MOST_DEFERRED

    def _work_off(self) -> None:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._deferred(connection)
            connection.execute("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        connection.stored = ()  # only now: who searches looks there for what waits

    def _hand_over(self, call: Callable[..., object], argument: object) -> None:
        try:
            self._loop.call_soon_threadsafe(call, argument)
        except RuntimeError:  # the loop is closed: nobody waits any more
            return

    def _commit(self, batch: list[_Job]) -> None:
        stored = self._connection.stored
        try:
            self._transaction(batch)
        except BaseException as error:
            self._roll_back()
            self._connection.stored = stored
            if self._connection.in_transaction:
                raise  # and nobody could write any more
            if len(batch) == 1:
                batch[0].error = (
                    unavailable(error, self._path, self._broken) if isinstance(error, apsw.Error) else error
                )
                return
            for job in batch:
                job.error = None
                self._commit([job])

    def _run(self, jobs: list[_Job]) -> None:
        """Run work outside of a transaction."""
        for job in jobs:
            try:
                job.result = job.work(self._connection)
            except apsw.Error as error:
                job.error = unavailable(error, self._path, self._broken)
            except BaseException as error:
                job.error = error

    def _transaction(self, batch: list[_Job]) -> None:
        """Raises apsw.Error if the transaction as a whole cannot be made."""
        connection = self._connection
        before = connection.total_changes()
        connection.execute("BEGIN IMMEDIATE")
        alone = len(batch) == 1
        for job in batch:
            if job.drafted and not alone:
                self._drafted(job)
            else:
                self._operation(job, alone=alone)
        if connection.in_transaction:
            connection.execute("COMMIT")
            if connection.total_changes() != before:
                self.commits += 1

    def _operation(self, job: _Job, *, alone: bool) -> None:
        connection, stored = self._connection, self._connection.stored
        if not alone:
            connection.execute("SAVEPOINT operation")
        try:
            job.result = job.work(connection)
        except apsw.Error:
            raise  # SQLite may have given up the whole transaction: its operations must all start anew
        except BaseException as error:
            job.error = error  # for the job's caller; the thread goes on
            connection.stored = stored
        if job.error is not None:
            if alone:
                self._roll_back()
                return
            connection.execute("ROLLBACK TO operation")
        if not alone:
            connection.execute("RELEASE operation")

    def _drafted(self, job: _Job) -> None:
        before = self._connection.total_changes()
        try:
            job.result = job.work(self._connection)
        except Exception as error:
            if isinstance(error, apsw.Error) or self._connection.total_changes() != before:
                raise  # the whole transaction is undone, and its operations start anew one by one
            job.error = error

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            # A failing rollback means that SQLite has done it already.
            with contextlib.suppress(apsw.Error):
                self._connection.execute("ROLLBACK")

    # -- on the loop ------------------------------------------------------------------------

    def _deliver(self, batch: list[_Job]) -> None:
        self._together = len(batch)
        for job in batch:
            try:
                if job.error is not None:
                    job.failed()
                else:
                    job.done(job.result)
                    if job.future.cancelled():
                        job.abandoned(job.result)
            except Exception as error:
                log.exception("store_callback_failed")
                job.error = job.error or error
            if job.future.done():
                continue
            if job.error is None:
                job.future.set_result(job.result)
            else:
                job.future.set_exception(_as_error(job.error))

    def _break(self, what: tuple[list[_Job], str]) -> None:
        """The thread has ended: tell everybody who waits, and the owner."""
        batch, error = what
        sentence = BROKEN.format(path=self._path, error=error)
        log.critical("store_writer_ended", path=str(self._path), error=error)
        with contextlib.suppress(Empty):
            while True:
                if (job := self._queue.get_nowait()) is not None:
                    batch.append(job)
        batch += self._gathered
        self._gathered.clear()
        for job in batch:
            job.error = StoreUnavailable(sentence)
        self._deliver(batch)
        self._broken(sentence)


def _as_error(error: BaseException) -> Exception:
    """An error that a future can hold and a caller can contain."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    made = RuntimeError(f"{type(error).__name__}: {error}")
    made.__cause__ = error
    return made
