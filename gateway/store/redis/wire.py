"""The way of the store's modules to the server: steps by name, in the partition of their chat.

On a single server, one connection carries steps that write, so that this process's steps keep their order. Another
carries steps that only read, so that a long transcript holds up no other step. On a cluster each partition has a
connection of its own for both, so that a node that is down holds up only its own partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.tasks import Background
from gateway.store.redis.connection import Argument, CallHeader, Connection, Job
from gateway.store.redis.endpoint import Endpoint
from gateway.store.redis.partitions import PARTITIONS, prefix
from gateway.store.redis.scripts import script

_LAST_WORDS = 3.0  # seconds that steps on their way are waited for


class Wire:
    """Carries steps between `open` and `aclose`; before and after, a step fails with StoreUnavailable."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        caller: CallHeader,
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

    async def run(self, partition: int, name: str, *arguments: str) -> Any:
        """The answer of a writing script. Raises StoreUnavailable or StoreError: nothing was done."""
        job = self._job(partition, name, arguments, writes=True)
        self._writers[partition].put(job)
        try:
            return await job.future
        except asyncio.CancelledError:
            if not job.ended:
                self._release(job)
            raise

    def submit(self, partition: int, name: str, *arguments: str) -> None:
        """Send a writing script that nobody waits for; a failure has no consequence."""
        if not self.is_open:
            return
        job = self._made(partition, name, arguments, writes=True)
        self._release(job)
        self._writers[partition].put(job)
        job.future.add_done_callback(_heard)

    def carry(
        self, partition: int, name: str, arguments: Sequence[Argument] | Callable[[Job], None], *, writes: bool
    ) -> Job:
        """Send a script, also while the store closes; its arguments may be a function that gives them to the job at the
        last moment. Raises StoreUnavailable once it is closed."""
        if not self._writers:
            raise StoreUnavailable("The store is closed.")
        job = self._made(partition, name, () if callable(arguments) else arguments, writes=writes)
        job.prepare = arguments if callable(arguments) else None
        (self._writers if writes else self._readers)[partition].put(job)
        return job

    async def time(self) -> float:
        """The server's time, in seconds since the epoch."""
        job = self._job(0, None, ("TIME",), writes=False)
        self._readers[0].put(job)
        seconds, micros = await job.future
        return int(seconds) + int(micros) / 1e6

    async def ask_all(self, commands: Iterable[tuple[int, Sequence[str]]]) -> list[Any]:
        """The answers to plain commands, which are sent together."""
        return list(await asyncio.gather(*[self.ask(partition, *command) for partition, command in commands]))

    def ask(self, partition: int, verb: str, key: str, *rest: str) -> asyncio.Future[Any]:
        """The answer to a plain command that only reads; `key` is without prefix."""
        job = self._job(partition, None, (verb, prefix(partition) + self.under + key, *rest), writes=False)
        self._readers[partition].put(job)
        return job.future

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

    def _job(self, partition: int, name: str | None, arguments: Sequence[str], *, writes: bool) -> Job:
        if self._draining or not self._writers:
            raise StoreUnavailable("The store is closed.")
        return self._made(partition, name, arguments, writes=writes)

    def _made(self, partition: int, name: str | None, arguments: Sequence[Argument], *, writes: bool) -> Job:
        return Job(
            future=asyncio.get_running_loop().create_future(),
            script=None if name is None else script(name),
            key=f"{prefix(partition)}{self.under}seq",
            arguments=arguments,
            writes=writes,
            since=self._clock.monotonic(),
        )

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
