"""A server that is a process on this machine, and its standard streams.

`keeper.py` starts it, so it ends with us, whatever happens to us. It sees only the variables that are named. Its output
is foreign: lines are bounded while they are read, and lines that are not messages are counted.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import SubprocessStreamProtocol
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct, field

from gateway.agent.mcp import keeper
from gateway.agent.mcp.server import MOST_BYTES, Event, ServerFailed
from gateway.agent.mcp.settings import McpServerSettings
from gateway.runtime.clock import Clock
from gateway.runtime.inside import marked
from gateway.runtime.tasks import unbroken

log = structlog.get_logger(__name__)

_PASSED_ON: Final = ("PATH", "HOME", "LANG")  # of the gateway's environment, and nothing else
_CHUNK: Final = 65_536
_CHEAP: Final = 16_384  # bytes of a message whose parts need not be counted
_MOST_PARTS: Final = 30_000  # of one
ENDS: Final = 1_024  # bytes of the beginning and of the end of a line that is too long
_GRACE: Final = 1.0  # seconds for a server to end by itself; its parent's are in keeper.py
_PATIENCE: Final = 5.0  # seconds for its parent to end all of it, or to say how it ended
_LOOK: Final = 1.0  # seconds between two looks at what it takes
_PAUSES: Final = 10  # times as long as a look took, at least
_LOGGED: Final = 200  # lines of its stderr
_LONGEST_LOGGED: Final = 2_000  # characters of one
_LAST_WORDS: Final = 3  # lines of its stderr that are told with the reason why it ended
_KEEPER: Final = Path(__file__).with_name("keeper.py")


class TooLong(Struct, frozen=True, kw_only=True):
    """A line that is not read. `ends` are its first and last bytes."""

    size: int
    ends: bytes


class Launch(Struct, frozen=True, kw_only=True):
    """How a server is started. `preface`: a line on its stderr that is not its own. `excess` looks at its process, in a
    thread, and gives a reason to end it, or ""."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: str | None
    preface: str = ""
    excess: Callable[[int], str] | None = None


def plainly(settings: McpServerSettings) -> Launch:
    """Start it as the user that we are."""
    kept = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    environment = marked({"PATH": os.defpath, **kept, **settings.env})
    return Launch(argv=(*settings.command, *settings.args), environment=environment, folder=settings.cwd)


class ServerProcess(Struct, kw_only=True):
    """A running server. `life` is the pipe by which its parent knows that we live."""

    name: str
    launch: Launch
    clock: Clock
    redact: Callable[[str], str]
    transport: asyncio.SubprocessTransport
    streams: _Streams
    life: int
    _words: deque[str] = field(default_factory=lambda: deque(maxlen=_LAST_WORDS))

    @classmethod
    async def start(cls, name: str, launch: Launch, *, clock: Clock, redact: Callable[[str], str]) -> ServerProcess:
        """Start a server. Raises ServerFailed. The library kills its process when the caller is cancelled, and the
        children of that process would stay. So a start is never broken off, and all of its processes are ended."""
        begun: list[ServerProcess] = []

        async def begin() -> None:
            begun.append(await cls._begun(name, launch, clock, redact))

        try:
            await unbroken(begin())
        except asyncio.CancelledError:
            for process in begun:
                await process.end()
            raise
        return begun[0]

    @classmethod
    async def _begun(cls, name: str, launch: Launch, clock: Clock, redact: Callable[[str], str]) -> ServerProcess:
        loop = asyncio.get_running_loop()
        theirs, life = os.pipe()
        try:
            transport, protocol = await loop.subprocess_exec(
                _Streams,
                *(sys.executable, "-I", "-S", str(_KEEPER), str(theirs), *launch.argv),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=launch.environment,
                cwd=launch.folder,
                pass_fds=(theirs,),
                start_new_session=True,  # a Ctrl-C at the terminal is not for it
            )
        except BaseException as error:
            os.close(life)
            if isinstance(error, OSError | ValueError):
                raise ServerFailed(f"it cannot be started: {error}") from error
            raise
        finally:
            os.close(theirs)
        return cls(
            name=name, launch=launch, clock=clock, redact=redact, transport=transport, streams=protocol, life=life
        )

    async def lines(self) -> AsyncIterator[bytes | TooLong]:
        """The lines that it prints, except empty ones, until it closes its output. No more than the limit of one line
        is held."""
        assert self.streams.stdout is not None, "it is a pipe"
        line = Line()
        while chunk := await self.streams.stdout.read(_CHUNK):
            for whole in line.ended(chunk):
                if whole:
                    yield whole
        if last := line.taken():
            yield last

    async def write(self, message: bytes) -> None:
        """Send it a message. Raises ServerFailed if it reads no more."""
        assert self.streams.stdin is not None, "it is a pipe"
        try:
            self.streams.stdin.write(message + b"\n")
            await self.streams.stdin.drain()
        except (OSError, RuntimeError) as error:
            raise ServerFailed("it reads no more") from error

    async def log(self) -> None:
        """Write its stderr into the log, line by line to the end."""
        assert self.streams.stderr is not None, "it is a pipe"
        line, said = Line(), 0
        while chunk := await self.streams.stderr.read(_CHUNK):
            for whole in line.ended(chunk):
                said += 1
                self._hear(whole, said)
        if last := line.taken():
            self._hear(last, said)

    async def watch(self, hear: Callable[[Event, str], None]) -> None:
        """Give it up as soon as it takes more than it may."""
        pause = _LOOK
        while self.launch.excess is not None:
            await self.clock.sleep(pause)
            began = self.clock.monotonic()
            if reason := await asyncio.to_thread(self.launch.excess, self.transport.get_pid()):
                hear("lost", f"it was ended, because {reason}")
                return
            pause = max(_LOOK, _PAUSES * (self.clock.monotonic() - began))

    def _hear(self, line: bytes | TooLong, number: int) -> None:
        printed = line.ends if isinstance(line, TooLong) else line
        text = self.redact(printed[:_LONGEST_LOGGED].decode("utf-8", "replace").strip())
        if not text or (number == 1 and text == self.launch.preface):
            return
        self._words.append(text)
        if number <= _LOGGED:
            log.info("mcp_server_says", server=self.name, text=text)
        elif number == _LOGGED + 1:
            log.info("mcp_server_says_more", server=self.name)

    async def ended(self, otherwise: str) -> str:
        """In a few words, how it ended; `otherwise` if it does not end."""
        if not await self._waited(_PATIENCE):
            return otherwise
        code = self.transport.get_returncode() or 0
        if code == keeper.NOT_FOUND and self._words:
            return self._words[-1]  # the keeper's, which says more than its code
        how = f"it ended with exit code {code}" if code >= 0 else f"it was ended by signal {-code}"
        return f"{how}; its last words: {' / '.join(self._words)}" if self._words else how

    async def end(self) -> None:
        """End it with all that it started. Takes a few seconds at most, also for a caller who is cancelled."""
        await unbroken(self._end())

    async def _end(self) -> None:
        if self.streams.stdin is not None:
            self.streams.stdin.close()
        ended = await self._waited(_GRACE)
        with suppress(OSError):
            os.close(self.life)
        if not ended and not await self._waited(_PATIENCE):
            with suppress(ProcessLookupError):
                self.transport.kill()
            await self.streams.exited.wait()
        self.transport.close()  # its last lines may be unread

    async def _waited(self, seconds: float) -> bool:
        try:
            async with self.clock.limit(seconds):
                await self.streams.exited.wait()
        except TimeoutError:
            return False
        return True


class _Streams(SubprocessStreamProtocol):
    """A process's standard streams. The library's `wait` waits for somebody to read all that was printed, too."""

    def __init__(self) -> None:
        super().__init__(limit=_CHUNK, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class Line:
    """A line, as far as it was read."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0
        self._last = b""

    def ended(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """Read on. Yields the lines that end in this chunk."""
        *ends, rest = chunk.split(b"\n")
        for piece in ends:
            if not self._size and len(piece) <= _CHEAP:
                yield piece  # as most lines are: a flood of them must cost little
            else:
                self._add(piece)
                yield self.taken()
        self._add(rest)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= MOST_BYTES:
            self._pieces.append(piece)
        else:
            if self._pieces:
                self._pieces = [b"".join(self._pieces)[:ENDS]]
            self._last = (self._last + piece)[-ENDS:]

    def taken(self) -> bytes | TooLong:
        """The line, which has ended."""
        whole, size, last = b"".join(self._pieces), self._size, self._last
        self._pieces, self._size, self._last = [], 0, b""
        if size > MOST_BYTES:
            return TooLong(size=size, ends=whole + last)
        return TooLong(size=size, ends=whole[:ENDS] + whole[-ENDS:]) if is_costly(whole) else whole


def is_costly(message: bytes) -> bool:
    """Whether a message has so many parts (numbers, texts, lists) that reading it would take long. Characters within a
    text cost nothing. Takes 30 ms for the longest message."""
    if len(message) <= _CHEAP:
        return False
    plain = message.replace(b"\\\\", b"").replace(b'\\"', b"")
    pieces = plain.split(b'"', 2 * _MOST_PARTS)
    between = b"".join(pieces[::2])
    return len(pieces) > 2 * _MOST_PARTS or sum(map(between.count, (b",", b"[", b"{"))) > _MOST_PARTS
