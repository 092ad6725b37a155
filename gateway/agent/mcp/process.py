"""A server that is a process on this machine, and its standard streams.

`keeper.py` starts it, so it ends with us, whatever happens to us. It sees only the variables that are named. Its output
is foreign: a line that is too long is given up while it is read, and lines that are no messages are counted. In a
sandbox it has a folder of its own, the folders that are lent, and the hosts that are named.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import SubprocessStreamProtocol
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct, field

from gateway.agent.mcp import keeper
from gateway.agent.mcp.server import MOST_BYTES, OUTGROWN, Event, ServerFailed
from gateway.agent.mcp.settings import McpServerSettings
from gateway.agent.tools.shell import lent_of
from gateway.runtime.clock import Clock
from gateway.runtime.inside import marked
from gateway.runtime.proxy import ForwardProxy, led_out
from gateway.runtime.sandbox import STANDS, Limits, Reach, Sandbox, argv, excess, why_not
from gateway.runtime.tasks import comes_within, unbroken

log = structlog.get_logger(__name__)

_PASSED_ON: Final = ("PATH", "HOME", "LANG")  # of the gateway's environment, and nothing else
_GRACE: Final = 1.0  # seconds for a server to end by itself; its parent's are in keeper.py
_PATIENCE: Final = 5.0  # seconds for its parent to end all of it, or to say how it ended
_LOOK: Final = 1.0  # seconds between two looks at what it takes
_PAUSES: Final = 10  # times as long as a look took, at least
_LOGGED: Final = 200  # lines of its stderr
_LONGEST_LOGGED: Final = 2_000  # characters of one
_LAST_WORDS: Final = 3  # lines of its stderr that are told with the reason why it ended
_KEEPER: Final = Path(__file__).with_name("keeper.py")
_SET: Final = ("PATH", "LANG", "HOME")  # by a sandbox, if the settings do not say otherwise
# A server runs for months, and may keep the packages that it fetches.
_LIMITS: Final = Limits(cpu=10**9, folder=2_000_000_000, files=100_000)


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


@asynccontextmanager
async def in_sandbox(
    name: str, settings: McpServerSettings, folder: Path, own: Sequence[Path], proxy: ForwardProxy
) -> AsyncIterator[Launch]:
    """Start it in a sandbox, whose way out is open until this is left. Raises ServerFailed where there is none."""
    if reason := await asyncio.to_thread(why_not):
        raise ServerFailed(f"it is to run in a sandbox, and there is none: {reason}")
    try:
        await asyncio.to_thread(folder.mkdir, mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ServerFailed(f"it has no folder: {error}") from error
    lent = list(lent_of(settings.folders, own, f"tools.mcp.{name}.folders"))
    chosen = [(each, settings.env[each]) for each in _SET if each in settings.env]
    box = Sandbox(folder=folder, lent=lent, variables=chosen, hands_on=True, limits=_LIMITS)
    command: Sequence[str] = (*settings.command, *settings.args)
    async with AsyncExitStack() as stack:
        if settings.hosts:
            reach = Reach(hosts=settings.hosts, everywhere="*" in settings.hosts, setting=f"tools.mcp.{name}.hosts")
            box, command = led_out(box, command, await stack.enter_async_context(proxy.open(reach)))
        yield Launch(
            argv=argv(box, command),
            environment=marked(settings.env),  # which, unlike arguments, other users do not see
            folder="/",
            preface=STANDS.strip(),
            excess=lambda pid: excess(pid, folder, _LIMITS),
        )


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
    _silent: asyncio.Event = field(default_factory=asyncio.Event)  # its stderr has come to its end

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

    async def lines(self) -> AsyncIterator[bytes]:
        """The lines that it prints, except empty ones, until it closes its output. Raises ServerFailed for one that is
        too long."""
        assert self.streams.stdout is not None, "it is a pipe"
        try:
            while line := await self.streams.stdout.readline():
                if whole := line.rstrip(b"\n"):
                    yield whole
        except ValueError as error:
            raise ServerFailed(OUTGROWN) from error

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
        for number in count(1):
            try:
                line = await self.streams.stderr.readline()
            except ValueError:  # it is too long to be read
                continue
            if not line:
                self._silent.set()
                return
            self._hear(line, number)

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

    def _hear(self, line: bytes, number: int) -> None:
        text = self.redact(line[:_LONGEST_LOGGED].decode("utf-8", "replace").strip())
        if not text or (number == 1 and text == self.launch.preface):
            return
        self._words.append(text)
        if number <= _LOGGED:
            log.info("mcp_server_says", server=self.name, text=text)
        elif number == _LOGGED + 1:
            log.info("mcp_server_says_more", server=self.name)

    async def ended(self, otherwise: str) -> str:
        """In a few words, how it ended; `otherwise` if it does not end."""
        if not await comes_within(self.streams.exited, _PATIENCE, self.clock):
            return otherwise
        await comes_within(self._silent, _GRACE, self.clock)  # its last words come after the news of its end
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
        ended = await comes_within(self.streams.exited, _GRACE, self.clock)
        with suppress(OSError):
            os.close(self.life)
        if not ended and not await comes_within(self.streams.exited, _PATIENCE, self.clock):
            with suppress(ProcessLookupError):
                self.transport.kill()
            await self.streams.exited.wait()
        self.transport.close()  # its last lines may be unread


class _Streams(SubprocessStreamProtocol):
    """A process's standard streams. The library's `wait` waits for somebody to read all that was printed, too."""

    def __init__(self) -> None:
        super().__init__(limit=MOST_BYTES, loop=asyncio.get_running_loop())
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()
