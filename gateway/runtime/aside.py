"""Functions that read foreign text, carried out in a process of their own, each for a limited time.

A pattern that never comes to an end holds up its whole process, whatever the thread. So the layout of a reply, whose
text may come from a stranger, runs beside the program. The system itself ends a process whose function takes too
long, and the next call starts another one. The process knows the program's modules, and none of its secrets. `python
-m gateway.runtime.aside` is that process."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Final, Protocol, TypeVar

from msgspec import Struct, field

from gateway.runtime.clock import Clock
from gateway.runtime.errors import TookTooLong
from gateway.runtime.inside import marked
from gateway.runtime.posix import resource

A = TypeVar("A")
T = TypeVar("T")

SECONDS: Final = 1.0  # for one call: a hundred times what the longest message takes
MOST_MEMORY: Final = 1_500_000_000  # bytes of addresses of the process: a small file may unpack to a large one
SHORT: Final = 1_000  # characters: `make slow` tries six times as many of the worst texts that we know
_LENGTH: Final = struct.Struct("!I")
_SENTENCE: Final = "A text could not be laid out in time; show it as it was written."


class RunsAside(Protocol):
    """Carries out a function of a foreign text, or of an object that holds one."""

    async def __call__(self, function: Callable[[A], T], text: A) -> T:
        """Return what `function` makes of `text`. Raises TookTooLong."""


async def at_once(function: Callable[[A], T], text: A) -> T:
    """A `RunsAside` without another process, and without a limit."""
    return function(text)


class WorkerProcess(Struct, kw_only=True):
    """A `RunsAside` with a process that starts when first needed. What goes in and comes out can be pickled. One call
    runs at a time, for at most `seconds`; a call that waits for longer than twice that is refused. A text of fewer than
    `at_once` characters is read here, because a process would take much longer than the text."""

    clock: Clock
    seconds: float = SECONDS
    at_once: int = 0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _process: asyncio.subprocess.Process | None = None

    async def __call__(self, function: Callable[[A], T], text: A) -> T:
        """What `function` makes of `text`. Raises TookTooLong, also where the process died or the function failed."""
        if isinstance(text, str) and len(text) < self.at_once:
            with suppress(Exception):  # of foreign code; the process fails as well, and says so
                return function(text)
        try:
            question = pickle.dumps((self.seconds, function, text))
        except (pickle.PicklingError, AttributeError, TypeError) as error:  # a lambda of somebody's platform
            raise TookTooLong(_SENTENCE) from error
        try:
            async with self.clock.limit(2 * self.seconds):
                await self._turn.acquire()
        except TimeoutError:
            raise TookTooLong(_SENTENCE) from None
        done = False
        try:
            result: T = await self._asked(question)
            done = True
        except (EOFError, OSError) as error:
            raise TookTooLong(_SENTENCE) from error
        finally:
            if not done:  # also when the caller was cancelled: its answer would be taken for the next one's
                await self._end()
            self._turn.release()
        return result

    async def aclose(self) -> None:
        async with self._turn:
            await self._end()

    async def _asked(self, question: bytes) -> T:
        process = self._process = self._process or await _started()
        source, target = process.stdout, process.stdin
        assert source is not None, "it is a pipe"
        assert target is not None, "it is a pipe"
        target.write(_LENGTH.pack(len(question)) + question)
        await target.drain()
        (length,) = _LENGTH.unpack(await source.readexactly(_LENGTH.size))
        result: T = pickle.loads(await source.readexactly(length))
        return result

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()
            await process.wait()


async def _started() -> asyncio.subprocess.Process:
    """A new process, in a session of its own, so that a Ctrl-C at the terminal does not reach it."""
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", __name__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
        env=marked({"PYTHONPATH": os.pathsep.join(sys.path)}),
    )


def serve(source: BinaryIO, target: BinaryIO) -> None:
    """Answer until the input ends. The alarm's own action ends the process, whatever it is busy with."""
    while len(head := source.read(_LENGTH.size)) == _LENGTH.size:
        seconds, function, text = pickle.loads(source.read(*_LENGTH.unpack(head)))
        _alarm_in(seconds)
        answer = pickle.dumps(function(text))
        _alarm_in(0.0)
        target.write(_LENGTH.pack(len(answer)) + answer)
        target.flush()


def _alarm_in(seconds: float) -> None:
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _bounded() -> None:
    """Take no more memory than `MOST_MEMORY`, where the system knows such a limit."""
    with suppress(OSError, ValueError, AttributeError):
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


if __name__ == "__main__":
    _bounded()
    serve(sys.stdin.buffer, sys.stdout.buffer)
