"""The proxy through which a sandbox reaches the internet, and nothing else does.

Each sandbox gets a door of its own: a Unix socket in a private folder, which is bound into that sandbox. The door says
which hosts may be asked for, by name, before a name is looked up. Where the name leads is judged where the socket is
made (`addresses.py`). `forward.py` connects the programs inside with the door.

What is inside means harm, perhaps. A crowd of connections waits in the kernel and costs nothing; a head is short and
comes soon; a connection that is silent ends.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractAsyncContextManager
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from types import TracebackType
from typing import Final, Self

import structlog
from msgspec import Struct, field

from gateway.runtime import forward
from gateway.runtime.addresses import PRIVATE, Address, Place, is_public, judge, look_up, lookups
from gateway.runtime.clock import Clock, Deadline
from gateway.runtime.sandbox import PORTS, PROXY, Reach, Sandbox
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Background

log = structlog.get_logger(__name__)

_AT_ONCE: Final = 40  # connections of one sandbox
_AT_ONCE_IN_ALL: Final = 200  # each takes two open files
_PAUSE: Final = 0.005  # seconds between two connections of one sandbox: a flood of them must not hold up the loop
_SHORT_OF_FILES: Final = 1.0  # seconds until the next attempt
_LOOKUPS: Final = 2  # of one sandbox at once
_HEAD: Final = 16_384  # bytes
_PIECE: Final = 65_536
_PATIENCE: Final = 10.0  # seconds for a head, and as many for a connection to a host
_SILENCE: Final = 300.0  # seconds; a server that packs a repository says nothing for minutes
_MOST_TOLD: Final = 10  # hosts that were refused
_END: Final = b"\r\n\r\n"
_REQUEST: Final = b"%b %b HTTP/1.1\r\nHost: %b\r\nUser-Agent: Legato\r\nAccept: */*\r\nConnection: close" + _END
_HOST: Final = rb"(?P<host>\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,253})"
_TUNNEL: Final = re.compile(rb"CONNECT %b:(?P<port>[0-9]{1,5}) HTTP/1\.[01]" % _HOST)
_PLAIN: Final = re.compile(
    rb"(?P<method>GET|HEAD) (?i:http)://%b(?::(?P<port>[0-9]{1,5}))?(?P<path>/[\x21-\x7e]*)? HTTP/1\.[01]" % _HOST
)


class Refused(Exception):
    """The proxy does not do this. The text is for the program, and fits in one line."""

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status


def asked(head: bytes) -> tuple[str, int, bytes]:
    """The host and the port that a request names, and what is sent there, where it is no tunnel. It is read strictly.
    Of a request by plain HTTP its address alone is sent on, so there is nothing that two programs could read in two
    ways. Raises Refused."""
    first, *_ = head.split(b"\r\n", 1)
    found = _TUNNEL.fullmatch(first) or _PLAIN.fullmatch(first)
    if found is None:
        raise Refused(400, "this proxy takes CONNECT host:port, and GET http://host/path without a body")
    host, port = found["host"].decode("ascii").strip("[]").lower().removesuffix("."), int(found["port"] or 80)
    if not 0 < port < 65_536:
        raise Refused(400, f"there is no port {port}")
    if found.re is _TUNNEL:
        return host, port, b""
    named = found["host"] + (b":%d" % port if port != 80 else b"")
    return host, port, _REQUEST % (found["method"], found["path"] or b"/", named)


_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
LooksUp = Callable[[str, int, Executor], Awaitable[Sequence[Place]]]


class ForwardProxy(Struct, frozen=True, kw_only=True):
    """All doors of one gateway. A test may have names looked up in another way, and let addresses pass that are not
    public."""

    clock: Clock
    allows: Callable[[Address], bool] = is_public
    look_up: LooksUp = look_up
    room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_ONCE_IN_ALL))

    def open(self, reach: Reach) -> AbstractAsyncContextManager[Door]:
        """A door for one sandbox. When it is left, its connections end. Raises OSError."""
        return Door(self, reach)


class Door:
    """The way out of one sandbox. `path`: of its socket. `refused`: hosts that were asked for and are not in reach."""

    path: Path

    def __init__(self, proxy: ForwardProxy, reach: Reach) -> None:
        self._proxy, self.reach = proxy, reach
        self.refused: dict[str, None] = {}
        self._visits = Background()
        self._room = asyncio.Semaphore(_AT_ONCE)
        self._threads = lookups(_LOOKUPS)

    async def __aenter__(self) -> Self:
        self.path = Path(mkdtemp(prefix="legato-")) / "proxy"  # for its owner alone
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        self._listener.bind(str(self.path))
        self._listener.listen(_AT_ONCE)
        self._visits.start(self._serve(), name="proxy")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        await self._visits.aclose()
        self._listener.close()
        rmtree(self.path.parent, ignore_errors=True)

    # -- connections --------------------------------------------------------------------------------

    async def _serve(self) -> None:
        """Take up connections while there is room for them. Others wait in the kernel."""
        loop, clock = asyncio.get_running_loop(), self._proxy.clock
        while True:
            await self._room.acquire()
            await self._proxy.room.acquire()
            try:
                connection, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                self._leave()
                log.warning("proxy_waits", error=str(error))
                await clock.sleep(_SHORT_OF_FILES)
                continue
            except asyncio.CancelledError:
                self._leave()
                raise
            self._visits.start(self._visit(connection), name="proxied").add_done_callback(lambda _: self._leave())
            await clock.sleep(_PAUSE)

    def _leave(self) -> None:
        self._proxy.room.release()
        self._room.release()

    async def _visit(self, connection: socket.socket) -> None:
        near = await asyncio.open_connection(sock=connection, limit=_HEAD)
        ends = [near]
        try:
            host, port, request = asked(await self._head(near))
            ends.append(await self._connected(host, port))
            await self._carry(near, ends[1], request)
        except Refused as refused:
            near[1].write(_refusal(refused))
        except (OSError, asyncio.IncompleteReadError):
            pass  # one end is gone, or says nothing
        finally:
            for _, writer in ends:
                writer.close()

    async def _head(self, near: _Stream) -> bytes:
        try:
            async with self._proxy.clock.limit(_PATIENCE):
                return await near[0].readuntil(_END)
        except asyncio.LimitOverrunError:
            raise Refused(431, f"a head has at most {_HEAD:,} bytes") from None

    async def _connected(self, host: str, port: int) -> _Stream:
        """A connection to a host that is in reach. Raises Refused."""
        if not self.reach.includes(host, port):
            name = host if port in PORTS else f"{host}:{port}"
            if len(self.refused) < _MOST_TOLD:
                self.refused[name] = None
            raise Refused(403, f"{name} is not among the hosts that may be reached from here ({self.reach.setting})")
        try:
            async with self._proxy.clock.limit(_PATIENCE):
                places = await self._proxy.look_up(host, port, self._threads)
                return await asyncio.open_connection(sock=await self._reached(places), limit=_PIECE)
        except PermissionError:
            raise Refused(403, f"{host}: {PRIVATE}") from None
        except TimeoutError:
            raise Refused(504, f"{host} did not answer in time") from None
        except (OSError, UnicodeError) as error:
            raise Refused(502, f"{host} cannot be reached: {getattr(error, 'strerror', None) or error}") from None

    async def _reached(self, places: Sequence[Place]) -> socket.socket:
        """A connection to the first of the public places that answers, those of IPv4 before others. Raises OSError."""
        loop, failure = asyncio.get_running_loop(), OSError("it has no address")
        for place in sorted(places, key=lambda place: place[0] != socket.AF_INET):
            family, kind, protocol, _, address = place
            with socket.socket(family, kind | socket.SOCK_NONBLOCK, protocol) as made:
                try:
                    judge(place, self._proxy.allows)
                    await loop.sock_connect(made, address)
                except OSError as error:
                    failure = error
                else:
                    return socket.socket(fileno=made.detach())
        raise failure

    async def _carry(self, near: _Stream, far: _Stream, request: bytes) -> None:
        """Carry bytes both ways or, for a request, only the answer: whatever else the program sends on this connection
        may be for another host."""
        async with self._proxy.clock.limit(_SILENCE) as deadline:
            if request:
                far[1].write(request)
                await _copy(far, near, deadline)
                return
            near[1].write(b"HTTP/1.1 200 Connection established" + _END)
            async with asyncio.TaskGroup() as group:
                group.create_task(_tunnelled(near, far, deadline))
                group.create_task(_tunnelled(far, near, deadline))


async def _copy(source: _Stream, target: _Stream, deadline: Deadline) -> None:
    while piece := await source[0].read(_PIECE):
        deadline.extend(_SILENCE)
        target[1].write(piece)
        await target[1].drain()


async def _tunnelled(source: _Stream, target: _Stream, deadline: Deadline) -> None:
    """Carry bytes until `source` says no more. A connection that breaks ends both."""
    try:
        await _copy(source, target, deadline)
        target[1].write_eof()
    except OSError:
        for _, writer in (source, target):
            writer.transport.abort()


def _refusal(refused: Refused) -> bytes:
    """A refusal, with the reason in the first line, too, because many programs show nothing else of an answer to
    CONNECT."""
    why = str(refused).encode("ascii", "replace")
    head = b"HTTP/1.1 %d %b\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close"
    return head % (refused.status, why, len(why) + 1) + _END + why + b"\n"


# -- inside ----------------------------------------------------------------------------------------


def led_out(sandbox: Sandbox, command: Sequence[str], door: Door) -> tuple[Sandbox, Sequence[str]]:
    """A sandbox with a door, and a command with the way there. It sees the Python that runs us, without its packages:
    nothing else is needed inside. Programs find the way by their variables, but for what they serve to themselves."""
    here, near = f"http://127.0.0.1:{forward.PORT}", "localhost,127.0.0.1,::1"
    named = [("http_proxy", here), ("https_proxy", here), ("no_proxy", near)]
    found = [*named, *((name.upper(), value) for name, value in named), ("NODE_USE_ENV_PROXY", "1")]
    python = Path(sys.base_prefix)
    with_door = replace(
        sandbox,
        proxy=door.path,
        programs=(*sandbox.programs, *(() if python.is_relative_to("/usr") else (python,))),
        variables=(*sandbox.variables, *found),
    )
    return with_door, (*_forwarding(), PROXY, *command)


@cache
def _forwarding() -> Sequence[str]:
    python = os.path.realpath(sys._base_executable)  # type: ignore[attr-defined]
    return python, "-I", "-S", "-c", Path(forward.__file__).read_text(encoding="utf-8")
