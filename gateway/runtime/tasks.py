"""Supervised tasks: everything that runs beside the main story has an owner here.

`Background` is one task group for the life of the app. A job that fails is logged and does not
touch its neighbours; at most one job of a kind runs per name; closing cancels and awaits all.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

import structlog

from gateway.runtime.clock import Clock
from gateway.runtime.errors import GatewayError, StoreUnavailable

log = structlog.get_logger(__name__)

T = TypeVar("T")

_LAST_CHANCE = 5.0  # seconds


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end even if the caller is cancelled meanwhile; the cancellation follows then.

    For a write and what must be noted in memory once it is durable: half of it would leave a turn
    that contradicts the store. Work that does not end within 5 s of the cancellation is given up.
    """
    task = asyncio.create_task(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await _ended(task)
        task.cancel()
        await _ended(task)
        raise


async def _ended(task: asyncio.Task[Any]) -> None:
    """Return when `task` has ended, at the latest after 5 s. Another cancellation (a /stop after a deadline) does not
    shorten that: the caller would continue beside its own unfinished write."""
    loop = asyncio.get_running_loop()
    give_up = loop.time() + _LAST_CHANCE
    while not task.done() and (left := give_up - loop.time()) > 0:
        with suppress(asyncio.CancelledError):
            await asyncio.wait([task], timeout=left)


async def ended_before(work: Callable[[], Awaitable[None]], event: asyncio.Event) -> bool:
    """Run `work` until it ends or `event` comes: whether it ended. Raises its GatewayError, not a group's error."""
    failures: list[GatewayError] = []

    async def contained() -> None:
        try:
            await work()
        except GatewayError as error:
            failures.append(error)

    async with asyncio.TaskGroup() as group:
        working, waiting = group.create_task(contained()), group.create_task(event.wait())
        await asyncio.wait([working, waiting], return_when=asyncio.FIRST_COMPLETED)
        ended = working.done()
        working.cancel()
        waiting.cancel()
    if failures:
        raise failures[0]
    return ended


async def comes_within(event: asyncio.Event, seconds: float, clock: Clock) -> bool:
    """Wait for an event, at most so long: whether it came."""
    with suppress(TimeoutError):
        async with clock.limit(seconds):
            return await event.wait()
    return False


async def best_effort(work: Awaitable[object], *, what: str) -> bool:
    """Await what a turn can do without, such as showing that somebody types; False, after logging, if it raised."""
    try:
        await work
    except Exception as error:
        log.warning("best_effort_failed", what=what, error=f"{type(error).__name__}: {error}")
        return False
    return True


class Crew:
    """Tasks of one piece of work, which ends with the first error of any of them."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._broken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Let another one begin."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not self._broken.done():
            self._broken.set_exception(error)

    async def work(self) -> None:
        """Wait for an error, and raise it. All have ended then, as they have when this is cancelled."""
        try:
            await self._broken
        finally:
            while tasks := [*self._tasks]:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


class Background:
    """Starts jobs, remembers them, and outlives none of them."""

    def __init__(self) -> None:
        self._jobs: set[asyncio.Task[None]] = set()
        self._named: dict[str, asyncio.Task[None]] = {}
        self._idle = asyncio.Event()
        self._idle.set()

    def start(self, job: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Run `job` until it ends or the app closes. Its failure is logged under `name`, with what the job's own lines
        of the log say of it."""
        context = copy_context()
        task = asyncio.get_running_loop().create_task(job, name=name, context=context)
        self._jobs.add(task)
        if len(self._jobs) == 1:
            self._idle.clear()
        task.add_done_callback(self._ended, context=context)
        return task

    def start_once(self, job: Coroutine[Any, Any, None], *, name: str) -> bool:
        """Like `start`, unless a job of this name still runs: then it is not begun. False then."""
        if name in self._named:
            job.close()
            return False
        task = self.start(job, name=name)
        self._named[name] = task
        task.add_done_callback(lambda _: self._named.pop(name, None))
        return True

    async def ended(self, name: str) -> None:
        """Return when no job of this name runs."""
        if (task := self._named.get(name)) is not None:
            await asyncio.wait([task])

    def stop(self, name: str) -> None:
        """Cancel the job of this name, if there is one."""
        if (task := self._named.get(name)) is not None:
            task.cancel()

    async def idle(self) -> None:
        """Return when no job runs."""
        await self._idle.wait()

    async def aclose(self) -> None:
        """Cancel all jobs and wait for each. Idempotent."""
        while self._jobs:
            for job in list(self._jobs):
                job.cancel()
            # `gather` would not let the loop come to its turn, and so to `_ended`, if all of them have just ended.
            await asyncio.wait(self._jobs)

    def _ended(self, task: asyncio.Task[None]) -> None:
        # The owner of last resort: a job's bug must not touch its neighbours.
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreUnavailable):
            log.warning("job_cut_short", job=task.get_name(), error=str(error))
        elif error is not None:
            log.error("job_failed", job=task.get_name(), exc_info=error)
        self._jobs.discard(task)
        if not self._jobs:
            self._idle.set()


class Later:
    """Calls functions after so many seconds, unless they are taken back before. One job sleeps for all of them: most
    are taken back, and a task and a timer for each would be part of every message's work."""

    def __init__(self, background: Background, clock: Clock, seconds: float) -> None:
        self._background = background
        self._clock = clock
        self._seconds = seconds
        self._waiting: dict[Hashable, tuple[float, Callable[[], object]]] = {}  # by name, in the order of their times
        self._sleeps = False

    def call(self, name: Hashable, function: Callable[[], object]) -> None:
        """Call it once; it takes the place of an earlier one of this name."""
        self._waiting.pop(name, None)
        self._waiting[name] = self._clock.monotonic() + self._seconds, function
        if not self._sleeps:
            self._sleeps = True
            self._background.start(self._serve(), name="later")

    def take_back(self, name: Hashable) -> None:
        """Do not call the function of this name."""
        self._waiting.pop(name, None)

    async def _serve(self) -> None:
        try:
            while self._waiting:
                name, (due_at, function) = next(iter(self._waiting.items()))
                if (wait := due_at - self._clock.monotonic()) > 0.0:
                    await self._clock.sleep(wait)
                else:
                    del self._waiting[name]
                    function()
        finally:
            self._sleeps = False


class Renewed:
    """Things that do not last, such as "typing…": each is shown again every few `seconds`, until it is ended or cannot
    be shown (a GatewayError). Nobody misses one for long. A running call may finish, because some libraries lose a
    connection with each call that is cancelled."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds
        self._shown: dict[Hashable, asyncio.Task[None]] = {}  # what is to be shown
        self._tasks: set[asyncio.Task[None]] = set()  # and what is not, but has a call under way
        self._calling: set[asyncio.Task[None]] = set()

    def begin(self, what: Hashable, show: Callable[[], Awaitable[object]]) -> None:
        """Show it at once, and again from now on."""
        self.end(what)
        task = self._shown[what] = asyncio.create_task(self._renew(what, show), name=f"renew {what}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def switch(self, what: Hashable, show: Callable[[], Awaitable[object]], *, active: bool) -> None:
        """Begin it or end it."""
        if active:
            self.begin(what, show)
        else:
            self.end(what)

    def end(self, what: Hashable) -> None:
        """Show it no more."""
        if (task := self._shown.pop(what, None)) is not None and task not in self._calling:
            task.cancel()

    async def aclose(self) -> None:
        """End all of them, and wait a few seconds for the calls under way. Idempotent."""
        for what in list(self._shown):
            self.end(what)
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=_LAST_CHANCE)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _renew(self, what: Hashable, show: Callable[[], Awaitable[object]]) -> None:
        task = asyncio.current_task()
        assert task is not None, "`begin` starts it as a task of its own"
        with suppress(GatewayError):
            while self._shown.get(what) is task:
                self._calling.add(task)
                try:
                    await show()
                finally:
                    self._calling.discard(task)
                if self._shown.get(what) is task:
                    await self._clock.sleep(self._seconds)
