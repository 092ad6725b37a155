"""The way of the store's modules to the server: steps by name, in the partition of their chat.

On one server there is a connection for steps that write, so that this process's steps keep their order, and
one for steps that only read, so that a long transcript holds up no other step. On a cluster each partition has
a connection of its own for both, so that a node that is down holds up only its own partitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import Background
from gateway.store.redis.connection import Argument, Caller, Connection, Job
from gateway.store.redis.endpoint import Endpoint
from gateway.store.redis.partitions import PARTITIONS, prefix
from gateway.store.redis.scripts import script

T = TypeVar("T")

_LAST_WORDS = 3.0  # seconds that steps on their way are waited for


class Wire:
    """Carries steps between `open` and `aclose`; before and after, a step fails with StoreUnavailable."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        caller: Caller,
        clock: Clock,
        background: Background,
        patience: float,
        under: str = "",
    ) -> None:
        """All its keys begin with their partition, and then with `under`."""
        self._endpoint = endpoint
        self._caller = caller
        self._clock = clock
        self._background = background
        self._patience = patience
        self.under = under
        self._draining = False
        self._writers: list[Connection] = []
        self._readers: list[Connection] = []
        self._loose: set[Job] = set()  # jobs whose caller is gone
        self._secured = asyncio.Event()  # one of these jobs is done

    def open(self) -> None:
        """Let steps through, once it is known whether the endpoint is a cluster."""
        if self._endpoint.is_cluster:
            self._writers = self._readers = [self._connection(each) for each in range(PARTITIONS)]
        else:
            self._writers, self._readers = [self._connection(0)] * PARTITIONS, [self._connection(0)] * PARTITIONS

    @property
    def is_open(self) -> bool:
        """Between `open` and `aclose`."""
        return bool(self._writers)

    def _connection(self, where: int) -> Connection:
        made = Connection(
            partial(self._endpoint.connect_for, where),
            caller=self._caller,
            clock=self._clock,
            timeout=self._endpoint.timeout,
            patience=self._patience,
            lost=self._endpoint.forget,
        )
        self._background.start(made.serve(), name=f"store connection {where}")
        return made

    # -- steps ------------------------------------------------------------------------------

    def send(
        self,
        partition: int,
        name: str,
        *arguments: str,
        read: Callable[[Any], T] | None = None,
        done: Callable[[T], None] | None = None,
        abandoned: Callable[[T], None] | None = None,
    ) -> Job:
        """Send a writing script at once; `result` waits for it. Raises StoreUnavailable if closed."""
        job = self._job(partition, name, arguments, writes=True, read=read)
        job.done, job.abandoned = done, abandoned
        self._writers[partition].put(job)
        return job

    async def run(
        self,
        partition: int,
        name: str,
        *arguments: str,
        read: Callable[[Any], T] | None = None,
        done: Callable[[T], None] | None = None,
        abandoned: Callable[[T], None] | None = None,
    ) -> T:
        """The result of a writing script. Raises the script's refusal, or StoreUnavailable: in both cases nothing was
        done."""
        job = self.send(partition, name, *arguments, read=read, done=done, abandoned=abandoned)
        result: T = await self._result(job)
        return result

    def submit(
        self,
        partition: int,
        name: str,
        *arguments: str,
        read: Callable[[Any], T] | None = None,
        done: Callable[[T], None] | None = None,
    ) -> None:
        """Send a writing script that nobody waits for; a failure has no consequence."""
        if not self.is_open:
            return
        job = self._made(partition, name, arguments, writes=True, read=read)
        job.done = done
        self._release(job)
        self._writers[partition].put(job)
        job.future.add_done_callback(_heard)

    def carry(self, partition: int, name: str, arguments: Sequence[Argument], *, writes: bool) -> Job:
        """Send a script, also while the store closes. Raises StoreUnavailable once it is closed."""
        if not self.is_open:
            raise StoreUnavailable("The store is closed.")
        job = self._made(partition, name, arguments, writes=writes)
        (self._writers if writes else self._readers)[partition].put(job)
        return job

    async def time(self) -> float:
        """The server's time, in seconds since the epoch."""
        job = self._job(0, None, ("TIME",), writes=False)
        self._readers[0].put(job)
        seconds, micros = await job.future
        return int(seconds) + int(micros) / 1e6

    def watch(self, job: Job, over: Callable[[], None]) -> None:
        """Call `over` when a sent job has ended, well or not; nobody waits for its result."""
        job.over.append(lambda _: over())
        job.future.add_done_callback(_heard)

    async def results(self, jobs: Sequence[Job]) -> list[Any]:
        """The results of jobs, once all are done. Raises the error of the first job that failed."""
        if len(jobs) < 2:
            return [await self._result(jobs[0])] if jobs else []
        try:
            await asyncio.wait([job.future for job in jobs])
        except asyncio.CancelledError:
            for job in jobs:
                self._abandon(job)
            raise
        errors = [error for job in jobs if (error := job.future.exception()) is not None]
        if errors:
            for job in jobs:
                self._abandon(job)
            raise errors[0]
        return [job.future.result() for job in jobs]

    async def _result(self, job: Job) -> Any:
        try:
            return await job.future
        except asyncio.CancelledError:
            self._abandon(job)
            raise

    async def look(self, partition: int, name: str, *arguments: str) -> Any:
        """The answer of a script that only reads."""
        job = self._job(partition, name, arguments, writes=False)
        self._readers[partition].put(job)
        return await job.future

    async def ask(self, partition: int, *command: str) -> Any:
        """The answer to a plain command that only reads; its second word is a key without prefix."""
        return await self._asked(partition, *command)

    async def ask_all(self, commands: Iterable[tuple[int, Sequence[str]]]) -> list[Any]:
        """The answers to plain commands, which are sent together."""
        return list(await asyncio.gather(*[self._asked(partition, *command) for partition, command in commands]))

    def _asked(self, partition: int, verb: str, key: str, *rest: str) -> asyncio.Future[Any]:
        job = self._job(partition, None, (verb, prefix(partition) + self.under + key, *rest), writes=False)
        self._readers[partition].put(job)
        return job.future

    async def look_everywhere(self, name: str, *arguments: str) -> list[Any]:
        """The answers of a reading script from each partition, in their order."""
        looks = (self.look(partition, name, *arguments) for partition in range(PARTITIONS))
        return list(await asyncio.gather(*looks))

    # -- lifetime ---------------------------------------------------------------------------

    async def settled(self) -> None:
        """Return when every step that nobody waits for is done, and so are its consequences; or after a while, since a
        node that is down must not hold up the others."""
        try:
            async with asyncio.timeout(_LAST_WORDS):
                for _ in range(2):
                    left = set(self._loose)
                    while left := left & self._loose:
                        self._secured.clear()
                        await self._secured.wait()
        except TimeoutError:
            return

    async def drain(self) -> None:
        """Take no more steps, but for `submit`; return when the steps on their way are done, or the server is too
        slow."""
        self._draining = True
        try:
            async with asyncio.timeout(_LAST_WORDS):
                for connection in self._connections():
                    await connection.idle()
                await self.settled()
        except TimeoutError:
            return

    async def aclose(self) -> None:
        """Hang up; after the connections have stopped serving."""
        connections = self._connections()
        self._writers, self._readers = [], []
        for connection in connections:
            await connection.aclose("The store is closed.")

    def _connections(self) -> set[Connection]:
        return {*self._writers, *self._readers}

    def _job(
        self,
        partition: int,
        name: str | None,
        arguments: Sequence[str],
        *,
        writes: bool,
        read: Callable[[Any], Any] | None = None,
    ) -> Job:
        if self._draining or not self._writers:
            raise StoreUnavailable("The store is closed.")
        return self._made(partition, name, arguments, writes=writes, read=read)

    def _made(
        self,
        partition: int,
        name: str | None,
        arguments: Sequence[Argument],
        *,
        writes: bool,
        read: Callable[[Any], Any] | None = None,
    ) -> Job:
        return Job(
            future=asyncio.get_running_loop().create_future(),
            script=None if name is None else script(name),
            key=f"{prefix(partition)}{self.under}seq",
            arguments=arguments,
            writes=writes,
            since=self._clock.monotonic(),
            read=read,
        )

    def _abandon(self, job: Job) -> None:
        """Nobody waits for this job's result any more."""
        future = job.future
        if not future.done():
            future.cancel()
            self._release(job)
        elif future.cancelled():
            # The caller was cancelled while the job was on its way.
            if not job.ended:
                self._release(job)
        elif future.exception() is None and job.abandoned is not None:
            job.abandoned(future.result())

    def _release(self, job: Job) -> None:
        self._loose.add(job)
        job.over.append(self._secure)

    def _secure(self, job: Job) -> None:
        self._loose.discard(job)
        self._secured.set()


def _heard(future: asyncio.Future[Any]) -> None:
    """Take note of a failure that nobody waits for, so that asyncio does not report the failure as lost."""
    if not future.cancelled():
        future.exception()
