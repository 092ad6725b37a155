"""The door of a server. Anybody can knock, so who waits there must cost next to nothing.

    connection                                                what happens
    ------------------------------------------------------    ------------------------------------------------------
    sends a whole head, which the server `admits`             the HTTP server takes it over, with what it sent
    sends another one, no HTTP, or too long a head            401, 400 or 431; what else it sends is thrown away
    sends a whole request that needs no look at its body      the `refusal`; its next request is judged in the same way
    owes the rest of a head or a body when patience is over   ended
    is one of too many that wait for their caller, or the     one of them is ended: of those without a head or of the
    program is short of open files                            others, whichever are more, the longest silent one

So a stranger's bytes reach no parser, start no task and set no timer of their own. A connection waits for its caller
while it owes a head or a body, reads no answer, or is idle. Others are being answered, and are never ended here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from math import inf
from typing import Any, Final

import structlog
from aiohttp import ClientError, StreamReader, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError
from gateway.runtime.posix import resource
from gateway.runtime.tasks import Background, Later

log = structlog.get_logger(__name__)

MOST_WAITING: Final = 256  # connections that wait for their caller; Telegram opens a hundred at most
MOST_ALIKE: Final = 128  # those of one address, which may be a proxy's
MOST_HEAD: Final = 32_768  # bytes
MOST_REST: Final = 65_536  # bytes that are read after a refusal; a stranger's flood is not
_KEPT_FILES: Final = 64  # open files that are left to the rest of the program, or an eighth of what the system grants
_AT_ONCE: Final = 8  # new connections in one pass of the loop: a crowd of them must not hold up a call
_QUEUED: Final = 1_024  # those that wait in the system, which costs no open file
_END: Final = b"\r\n\r\n"
_LAST_WORDS: Final = 3.0  # seconds for the running requests when a server closes
_REASONS: Final = {400: "Bad Request", 401: "Unauthorized", 431: "Request Header Fields Too Large"}
_REFUSALS: Final = {
    status: f"HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
    for status, reason in _REASONS.items()
}

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Door:
    """Lets requests in to `answer`. `name`: of the server, in the log. `patience`: seconds for a head, for a body
    that stands still, and between two requests. `linger`: seconds for reading the rest of a refused request,
    without which its answer would not arrive. `admits` judges the first head of a connection. `refusal` is the answer
    to what was said, if it is one whole request that can be refused by its head. `crowd`: the connections that may wait
    for their caller, half of them of one address. No body is unpacked: a few packed bytes
    can become gigabytes."""

    def __init__(
        self,
        name: str,
        answer: Answer,
        clock: Clock,
        *,
        patience: float,
        linger: float = 1.0,
        admits: Callable[[bytes], bool] = lambda _: True,
        refusal: Callable[[bytes], bytes | None] = lambda _: None,
        crowd: int = MOST_WAITING,
    ) -> None:
        self._name, self._answer, self.admits, self.refusal, self._crowd = name, answer, admits, refusal, crowd
        logger = logging.Logger("aiohttp.server")  # not the shared one: the filter is for this server alone
        logger.parent = logging.getLogger(logger.name)
        logger.addFilter(self._is_news)
        self._how: dict[str, Any] = {"keepalive_timeout": patience, "lingering_time": linger, "logger": logger}
        self._background = Background()
        self._late = Later(self._background, clock, patience)
        self._new: dict[_Visit, None] = {}  # without a head, the oldest first
        self._idle: dict[_Visit, None] = {}  # the others that wait for their caller, the longest silent first
        self._counts: dict[int | str, int] = {}  # what was refused, by the reason

    async def open(self, **where: Any) -> None:
        """Listen `where` (as in `loop.create_server`). Raises OSError or OverflowError if the address cannot be had."""
        self._server = web.Server(self._asked, access_log=None, auto_decompress=False, **self._how)
        loop = asyncio.get_running_loop()
        self._listener = await loop.create_server(lambda: _Visit(self), backlog=_AT_ONCE, **where)
        for each in self._listener.sockets:
            with each.dup() as same:
                same.listen(_QUEUED)

    async def serve(self, host: str, port: int, section: str, begun: Callable[[], object] = lambda: None) -> None:
        """Answer requests until cancelled; `begun` is called once it listens. The workers of one host share the port.
        Raises AdapterError if it cannot be had: `section` of the configuration names another."""
        try:
            await self.open(host=host, port=port, reuse_port=True)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            raise AdapterError(
                f"Legato cannot listen at {host}:{port} ({why}). Free that port, or set another in {section}."
            ) from error
        log.info("listens", server=self._name, host=host, port=port)
        begun()
        try:
            await asyncio.Event().wait()
        finally:
            await self.close(_LAST_WORDS)

    async def body(self, request: web.BaseRequest, most: int) -> bytes | web.Response:
        """The body of a POST, if it has at most so many bytes, or the refusal of any other request."""
        if request.method != "POST" or (request.content_length or 0) > most:
            return self.refused(405 if request.method != "POST" else 413, request)
        try:
            return await request.clone(client_max_size=most).read()
        except web.HTTPRequestEntityTooLarge:
            return self.refused(413, request)
        except (ClientError, web.RequestPayloadError):
            return self.refused(400, request)

    @property
    def port(self) -> int:
        """Return the port at which it listens."""
        return int(self._listener.sockets[0].getsockname()[1])

    async def close(self, last_words: float) -> None:
        """Let nobody in any more, and give running requests so many seconds."""
        self._listener.close()
        for each in list(self._new):
            self.end(each)
        self._server.pre_shutdown()
        await self._server.shutdown(last_words)
        await self._background.aclose()

    def count(self, why: int | str, remote: str | None) -> None:
        """Count what was refused. Only the 1st, 2nd, 4th, 8th… is logged, so that nobody can fill the log."""
        count = self._counts[why] = self._counts.get(why, 0) + 1
        if count & (count - 1) == 0:
            log.warning("request_refused", server=self._name, why=why, count=count, remote=remote)

    def refused(self, status: int, request: web.BaseRequest) -> web.Response:
        """An answer without a body, which is counted; the connection ends."""
        self.count(status, request.remote)
        response = web.Response(status=status)
        response.force_close()
        return response

    # -- connections --------------------------------------------------------------------------------

    def came(self, visit: _Visit, file: int) -> None:
        """A connection opened, as this open file."""
        self._new[visit] = None
        self._late.call(visit, partial(self.end, visit))
        self._make_room(visit, short=file >= _files())

    def admit(self, visit: _Visit) -> RequestHandler:
        """Let the HTTP server go on with a connection."""
        self.gone(visit)
        self._idle[visit] = None
        return self._server()

    def waits(self, visit: _Visit, *, owes: bool) -> None:
        """A connection waits for its caller from now on. `owes`: the caller is in the midst of a request."""
        self.gone(visit)
        self._idle[visit] = None
        if owes:
            self._late.call(visit, partial(self.end, visit))
        self._make_room(visit)

    def gone(self, visit: _Visit) -> None:
        """A connection waits for its caller no more."""
        self._late.take_back(visit)
        self._new.pop(visit, None)
        self._idle.pop(visit, None)

    def end(self, visit: _Visit) -> None:
        """End a connection."""
        self.gone(visit)
        visit.transport.abort()

    def _make_room(self, visit: _Visit, *, short: bool = False) -> None:
        """End one connection if there are too many: one of the same address if those are."""
        waiting = len(self._new) + len(self._idle)
        alike = self._crowd * MOST_ALIKE // MOST_WAITING
        if waiting > alike or short:
            crowd = [[each for each in kind if each.address == visit.address] for kind in (self._new, self._idle)]
            if sum(map(len, crowd)) <= alike:
                crowd = [list(self._new), list(self._idle)] if waiting > self._crowd or short else []
            for oldest, *_ in sorted(crowd, key=len)[-1:]:
                self.count("crowd", oldest.address)
                self.end(oldest)

    # -- requests -----------------------------------------------------------------------------------

    async def _asked(self, request: web.BaseRequest) -> web.StreamResponse:
        visit = request.transport.get_protocol() if request.transport is not None else None
        if not isinstance(visit, _Visit):
            return await self._answer(request)
        visit.asks(request.content)
        try:
            return await self._answer(request)
        finally:
            visit.answered()

    def _is_news(self, line: logging.LogRecord) -> bool:
        """Whether a line of the library is logged. What is no HTTP, or is cut off, is counted like all refused."""
        error = line.exc_info[1] if line.exc_info else None
        if isinstance(error, HttpProcessingError):
            self.count(error.code, None)
        elif isinstance(error, web.RequestPayloadError):
            self.count(400, None)
        elif isinstance(error, ConnectionResetError):
            self.count("cut", None)
        else:
            return True
        return False


class _Visit(asyncio.Protocol):
    """One connection. It reads up to the end of the first head; what comes later is the HTTP server's."""

    transport: asyncio.Transport
    address: str | None = None

    def __init__(self, door: Door) -> None:
        self._door = door
        self._said = bytearray()
        self._rest: int | None = None  # bytes that it may still send; None: it is not refused
        self._server: RequestHandler | None = None
        self._body: StreamReader | None = None  # of the request that is being answered

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if peer else None
        self._door.came(self, transport.get_extra_info("socket").fileno())

    def data_received(self, data: bytes) -> None:
        """Wait for a whole head, and judge it."""
        if self._server is not None:
            if not self._is_answered:
                self._door.waits(self, owes=self._body is not None)
            self._server.data_received(data)
        elif self._rest is not None:
            self._rest -= len(data)
            if self._rest < 0:
                self.transport.abort()
        else:
            known = len(self._said)
            self._said += data
            self._judge(self._said.find(_END, max(0, known - len(_END))))

    def _judge(self, end: int) -> None:
        if not (self._said[:1].isalpha() or self._said[0] in b"\r\n"):
            self._refuse(400)  # a browser that begins with https waits for this
        elif end < 0 and len(self._said) > MOST_HEAD:
            self._refuse(431)
        elif end >= 0 and not self._door.admits(bytes(self._said[: end + 2])):
            self._refuse(401)
        elif end >= 0 and (told := self._door.refusal(bytes(self._said))) is not None:
            self._said.clear()
            self._door.count("head", self.address)
            self.transport.write(told)
        elif end >= 0:
            said, self._said = bytes(self._said), bytearray()
            self._server = self._door.admit(self)
            self._server.connection_made(self.transport)
            self._server.data_received(said)

    def _refuse(self, status: int) -> None:
        """Answer. The connection stays for a while: its answer is lost if it ends before all it sent is read."""
        self._said.clear()
        self._rest = MOST_REST
        self._door.count(status, self.address)
        self.transport.write(_REFUSALS[status])
        self.transport.write_eof()

    @property
    def _is_answered(self) -> bool:
        return self._body is not None and self._body.is_eof()

    def asks(self, body: StreamReader) -> None:
        """A request begins."""
        self._body = body
        if not body.is_eof():
            self._door.waits(self, owes=True)
        body.on_eof(partial(self._whole, body))

    def _whole(self, body: StreamReader) -> None:
        if self._body is body:
            self._door.gone(self)

    def answered(self) -> None:
        self._body = None
        if not self.transport.is_closing():
            self._door.waits(self, owes=False)

    def pause_writing(self) -> None:
        if self._server is not None:
            self._server.pause_writing()
            self._door.waits(self, owes=False)

    def resume_writing(self) -> None:
        if self._server is not None:
            self._server.resume_writing()
            if self._is_answered:
                self._door.gone(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._door.gone(self)
        if self._server is not None:
            self._server.connection_lost(exc)


def _files() -> float:
    """How many files the program may have open before connections are ended. The system counts from 0 without gaps."""
    if resource is None:
        return inf
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return inf if most == resource.RLIM_INFINITY else most - min(_KEPT_FILES, most // 8)
