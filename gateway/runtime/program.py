"""Runs another program to its end: in a session of its own, within a time, with bounded output. Everything that it
started ends with it. It reads nothing, and sees only the environment that it is given."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from gateway.runtime.clock import Clock
from gateway.runtime.inside import marked
from gateway.runtime.tasks import comes_within

_KEPT: Final = 12_000  # bytes of output at its beginning, and as many at its end
_LAST_WORDS: Final = 1.0  # seconds in which output from before a program's end is still read
_ROUNDS: Final = 20  # of looking for processes that a program left: they may start others meanwhile
_INPUT: Final = 0
_ERRORS: Final = 2  # the number of stderr
_LOOKS: Final = 0.25  # seconds between two looks of a watch
_PAUSES: Final = 10  # times as long as a look took, at least


class ProgramResult(Struct, frozen=True, kw_only=True):
    """The end of a program. `code` is negative for a signal; `late`: it took longer than it might; `excess`: the watch
    ended it, for this reason. `errors` is what it wrote to stderr, where that is kept apart."""

    code: int
    late: bool
    excess: str = ""
    output: str
    errors: str = ""


async def run(
    argv: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    seconds: float,
    clock: Clock,
    apart: bool = False,
    own: bool = False,
    watch: Callable[[int], str] | None = None,
    hear: Callable[[bytes], None] | None = None,
    answer: bytes = b"",
) -> ProgramResult:
    """Run a program, and end everything that it started. `apart`: its stderr is no part of its output. `own`: it is a
    command of Legato's. `watch` looks at its process, in a thread, and gives a reason to end it, or "". `hear` is given
    the whole output as it comes. `answer` comes on its stdin when it has said something. Raises OSError if it cannot be
    started."""
    written = _Written(2 if apart else 1, hear, answer)
    transport = await _started(argv, folder, environment if own else marked(environment), written, apart=apart)
    try:
        late, excess = await _over(transport.get_pid(), written, watch, seconds, clock)
        code = transport.get_returncode() or 0
        _end(transport)  # also what runs in the background, and may hold the output open
        await comes_within(written.closed, _LAST_WORDS, clock)
    finally:
        await _closed(transport, written)
    return ProgramResult(
        code=code, late=late, excess=excess, output=written.output.text(), errors=written.errors.text()
    )


async def _over(
    pid: int, written: _Written, watch: Callable[[int], str] | None, seconds: float, clock: Clock
) -> tuple[bool, str]:
    """Wait until a program ends, its time is over, or its watch has a reason to end it. Returns the last two."""
    due, pause = clock.monotonic() + seconds, seconds if watch is None else _LOOKS
    while not await comes_within(written.exited, min(pause, due - clock.monotonic()), clock):
        looked = clock.monotonic()
        if looked >= due:
            return True, ""
        if watch is not None:
            if reason := await asyncio.to_thread(watch, pid):
                return False, reason
            pause = max(_LOOKS, _PAUSES * (clock.monotonic() - looked))
    return False, ""


class _BoundedOutput:
    """The beginning and the end of what a program writes, and its size."""

    def __init__(self) -> None:
        self._first = b""
        self._last = b""
        self._size = 0

    def add(self, data: bytes) -> None:
        """Keep the beginning, and the end so far."""
        self._size += len(data)
        room = _KEPT - len(self._first)
        self._first += data[:room]
        if room < len(data):
            self._last = (self._last + data[room:])[-_KEPT:]

    def text(self) -> str:
        """Return the kept output. It is cut between lines: half of a credential would not be recognised."""
        if self._size == len(self._first) + len(self._last):
            return _decoded(self._first + self._last).rstrip()
        first = self._first[: self._first.rfind(b"\n") + 1] or self._first
        last = self._last[self._last.find(b"\n") + 1 :] or self._last
        left_out = self._size - len(first) - len(last)
        mark = f"[… {left_out:,} of {self._size:,} bytes left out …]"
        return f"{_decoded(first).rstrip()}\n{mark}\n{_decoded(last).rstrip()}"


class _Written(asyncio.SubprocessProtocol):
    """The output of a program, and whether the program may still write."""

    def __init__(self, pipes: int, hear: Callable[[bytes], None] | None, answer: bytes) -> None:
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()  # nobody can write any more
        self.output, self.errors = _BoundedOutput(), _BoundedOutput()
        self._hear = hear
        self._open = pipes
        self.answer = answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self._transport = transport

    def process_exited(self) -> None:
        self.exited.set()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._open -= fd != _INPUT
        if self._open == 0:
            self.closed.set()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep what there is room for."""
        (self.errors if fd == _ERRORS else self.output).add(data)
        if self._hear is not None:
            self._hear(data)
        stdin = self._transport.get_pipe_transport(_INPUT) if self.answer else None
        if isinstance(stdin, asyncio.WriteTransport):
            stdin.write(self.answer)
            self.answer = b""


def _decoded(written: bytes) -> str:
    return written.decode("utf-8", "replace")


async def _started(
    argv: Sequence[str], folder: Path, environment: Mapping[str, str], written: _Written, *, apart: bool
) -> asyncio.SubprocessTransport:
    """Start the program. A cancellation meanwhile ends it as a whole: asyncio by itself would end only the program,
    which may have started others by then."""
    loop = asyncio.get_running_loop()
    starting = loop.create_task(
        loop.subprocess_exec(
            lambda: written,
            *argv,
            stdin=asyncio.subprocess.PIPE if written.answer else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE if apart else asyncio.subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,  # which can be ended as a whole
        )
    )
    try:
        return (await asyncio.shield(starting))[0]
    except asyncio.CancelledError:
        with suppress(OSError):
            await _closed((await starting)[0], written)
        raise


async def _closed(transport: asyncio.SubprocessTransport, written: _Written) -> None:
    """Let go of a program, and end it if its caller ended first."""
    if not written.exited.is_set():
        _end(transport)
        await written.exited.wait()
    transport.close()


def _end(transport: asyncio.SubprocessTransport) -> None:
    """End the program and all that it started in its session. Its group is not enough: `timeout` and shells with
    job control give the processes that they start groups of their own."""
    session = transport.get_pid()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(session, signal.SIGKILL)
    for _ in range(_ROUNDS):
        left = _members(session)
        for pid in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if not left:
            return


def _members(session: int) -> list[int]:
    """The processes of a session that have not ended. None where the system does not list them in /proc."""
    return [int(stat.parent.name) for stat in Path("/proc").glob("[0-9]*/stat") if _is_of(session, stat)]


def _is_of(session: int, stat: Path) -> bool:
    try:
        *_, facts = stat.read_bytes().rpartition(b")")  # a program's name may hold spaces and brackets
    except OSError:
        return False  # it has ended meanwhile
    state, _, _, of, *_ = facts.split()  # proc(5): state, parent, group, session
    return int(of) == session and state not in (b"Z", b"X")
