"""Several gateway processes on one host, kept running: `legato run --workers N`.

The parent does no work of its own. A worker that dies is started again, later each time it dies
young; SIGTERM, SIGINT and SIGHUP are passed on, and the parent ends when the last worker has. A parent that is
killed takes its workers along: each sees the end of a pipe that only the parent holds open.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from msgspec import Struct, field

from gateway.runtime import posix
from gateway.runtime.backoff import Backoff
from gateway.runtime.clock import Clock
from gateway.runtime.tasks import comes_within

log = structlog.get_logger(__name__)

SERVICE_ENDS: Final = (signal.SIGTERM, signal.SIGINT)
_STDERR: Final = 2
_GROWN_UP = 60.0  # seconds of life after which a death is not held against a worker


def asked_to_end() -> tuple[signal.Signals, ...]:
    """The signals that ask a terminal's process to end well. Python by itself dies of SIGHUP and leaves commands
    running; a person who starts a program with nohup wants SIGHUP ignored."""
    if posix.HANGUP is None or signal.getsignal(posix.HANGUP) == signal.SIG_IGN:
        return SERVICE_ENDS
    return (*SERVICE_ENDS, posix.HANGUP)


def at_hangup(reload: Callable[[], object], stop: Callable[[], object]) -> None:
    """Have SIGHUP reload this process, or stop it where it comes because its terminal went away."""
    in_terminal = os.isatty(_STDERR)

    def hung_up() -> None:
        (stop if in_terminal and not os.isatty(_STDERR) else reload)()

    posix.on_signal(posix.HANGUP, hung_up)


class Workers(Struct, kw_only=True):
    """Runs `command` in `size` processes until asked to stop; each is given its number, from 0, behind it."""

    command: Sequence[str]
    size: int
    clock: Clock
    _workers: dict[int, asyncio.subprocess.Process] = field(default_factory=dict)
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)
    _hopeless: int = 0

    async def run(self) -> int:
        """The exit status: 0, or that of a worker that cannot run at all (a bad configuration)."""
        for number in SERVICE_ENDS:
            posix.on_signal(number, self.stop)
        at_hangup(lambda: self._pass_on(signal.SIGHUP), self.stop)
        parent_pipe, held = os.pipe()
        try:
            async with asyncio.TaskGroup() as group:
                for index in range(self.size):
                    group.create_task(self._keep(index, parent_pipe))
        finally:
            os.close(parent_pipe)
            os.close(held)
        return self._hopeless

    def stop(self) -> None:
        """Let every worker drain and end."""
        self._stopping.set()
        self._pass_on(signal.SIGTERM)

    def _pass_on(self, number: signal.Signals) -> None:
        for worker in self._workers.values():
            if worker.returncode is None:
                worker.send_signal(number)

    async def _keep(self, index: int, parent_pipe: int) -> None:
        backoff = Backoff(0.5, 30.0)
        while not self._stopping.is_set():
            began = self.clock.monotonic()
            worker = await asyncio.create_subprocess_exec(*self.command, str(index), stdin=parent_pipe)
            self._workers[index] = worker
            if self._stopping.is_set():  # asked while it was being started
                worker.send_signal(signal.SIGTERM)
            status = await worker.wait()
            if self._stopping.is_set():
                return
            if status == _BAD_CONFIGURATION:
                self._hopeless = status  # it has said why; another start would say it again
                self.stop()
                return
            if self.clock.monotonic() - began > _GROWN_UP:
                backoff.reset()
            wait = backoff.pause()
            log.error("worker_died", worker=index, status=status, again_in=wait)
            await comes_within(self._stopping, wait, self.clock)


def when_alone(parent_pipe: int, stop: Callable[[], None]) -> None:
    """In a worker: call `stop` when the parent has ended, however it did. `parent_pipe` is the descriptor of
    the pipe that it was started with, its standard input."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(parent_pipe, 64):
            loop.remove_reader(parent_pipe)
            log.error("parent_died")
            stop()

    loop.add_reader(parent_pipe, look)


_BAD_CONFIGURATION = 2
"""The exit status of a program whose configuration cannot be used."""
