"""The address that Telegram calls. It takes one update a request, and nothing from anybody else.

    request                                  answer
    -------------------------------------    --------------------------------------------------------------
    another path, or without the secret      404 or 401, without a reason; the log counts them
    another method, type, size or shape      405, 415, 413 or 400: the caller knew the secret, so the reason may show
    an update that is stored now             200, also for an update without use here
    an update that cannot be stored now      503 with `Retry-After`: Telegram keeps it and sends it again

Slow connections are ended. Of too many connections, the oldest one that has not shown the secret is ended. So strangers
can neither keep Telegram out nor use up the program's open files. No body is unpacked: a few packed bytes can become
gigabytes.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote

import structlog
from aiohttp import ClientError, web
from aiohttp.http_exceptions import HttpProcessingError

from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError, StoreUnavailable

log = structlog.get_logger(__name__)

SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"
MOST_BYTES: Final = 1_048_576  # of one request; an update has a few thousand
MOST_CONNECTED: Final = 256  # Telegram opens a hundred at most: https://core.telegram.org/bots/api#setwebhook
MOST_STRANGERS: Final = 128  # connections of one address without the secret; the address may be a proxy's
_LINGER: Final = 2.0  # seconds for reading the rest of a refused request; else its answer would not arrive
_COME_AGAIN: Final = 2  # seconds: Telegram sends an update again that could not be stored
_LAST_WORDS: Final = 3.0  # seconds for the running requests when the endpoint closes

Take = Callable[[dict[str, Any]], Awaitable[None]]


@dataclass(slots=True, kw_only=True)
class Endpoint:
    """Listens at `host`, `port` and `path`. `take` stores an update, and raises StoreUnavailable while the store is
    away. `patience`: seconds for a request's head, and again for its body."""

    host: str
    port: int
    path: str
    secret: str
    clock: Clock
    take: Take
    patience: float = 15.0
    _refused: dict[int, int] = field(default_factory=dict)  # by status: how many requests were refused with it
    _known: Callable[[web.RequestHandler], None] = lambda _: None  # called with each connection that showed the secret

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Answer requests until the block ends; running ones get their answer. Raises AdapterError if the port is
        taken."""
        logger = logging.Logger("aiohttp.server")  # not the shared one: the filter is for this endpoint alone
        logger.parent = logging.getLogger(logger.name)
        logger.addFilter(self._is_news)
        server = _Server(
            self._asked,
            keepalive_timeout=self.patience,
            lingering_time=_LINGER,
            access_log=None,
            logger=logger,
            auto_decompress=False,
        )
        self._known = server.admit
        runner = web.ServerRunner(server, shutdown_timeout=_LAST_WORDS)
        await runner.setup()
        try:
            # The workers of one host share the port; the system spreads the requests over them.
            await web.TCPSite(runner, self.host, self.port, reuse_port=True).start()
            log.info("webhook_listens", host=self.host, port=self.port, path=self.path)
            yield
        except OSError as error:
            raise AdapterError(
                f"Telegram's webhook cannot listen at {self.host}:{self.port} ({error.strerror or error}); free that "
                "port, or set another in adapters.telegram.webhook."
            ) from error
        finally:
            await runner.cleanup()

    async def _asked(self, request: web.BaseRequest) -> web.Response:
        status = self._objection(request)
        if status is None:
            status, update = await self._read(request)
            if update is not None:
                return await self._answer(update)
        return self._refuse(status, request)

    def _objection(self, request: web.BaseRequest) -> int | None:
        """The status for a request that its head alone makes wrong; None: the head is right."""
        if request.path != unquote(self.path):
            return 404
        given = request.headers.get(SECRET_HEADER, "").encode(errors="surrogateescape")
        if not hmac.compare_digest(given, self.secret.encode()):
            return 401
        self._known(request.protocol)
        if request.method != "POST":
            return 405
        packed = request.headers.get("Content-Encoding", "identity") != "identity"
        if request.content_type != "application/json" or packed:
            return 415
        return 413 if (request.content_length or 0) > MOST_BYTES else None

    async def _read(self, request: web.BaseRequest) -> tuple[int, dict[str, Any] | None]:
        """The status of a request, and its update. Without an update the request is refused."""
        try:
            async with self.clock.limit(self.patience):
                update = json.loads(await request.read())
        except TimeoutError:
            return 408, None
        except web.HTTPRequestEntityTooLarge:
            return 413, None
        except (ValueError, RecursionError, ClientError, web.RequestPayloadError):
            return 400, None
        return (200, update) if isinstance(update, dict) and isinstance(update.get("update_id"), int) else (400, None)

    async def _answer(self, update: dict[str, Any]) -> web.Response:
        try:
            await self.take(update)
        except StoreUnavailable as error:
            log.warning("updates_wait", count=1, error=str(error))
            return web.Response(status=503, headers={"Retry-After": str(_COME_AGAIN)})
        return web.Response()

    def _refuse(self, status: int, request: web.BaseRequest) -> web.Response:
        """An answer without a body; the connection ends."""
        self._count(status, request.remote)
        response = web.Response(status=status)
        response.force_close()
        return response

    def _is_news(self, line: logging.LogRecord) -> bool:
        """Whether a line of the library is logged. A request that is no HTTP is counted like other refused ones."""
        error = line.exc_info[1] if line.exc_info else None
        if isinstance(error, HttpProcessingError | web.RequestPayloadError):
            self._count(error.code if isinstance(error, HttpProcessingError) else 400, None)
            return False
        return True

    def _count(self, status: int, remote: str | None) -> None:
        """Count a refused request. Only the 1st, 2nd, 4th, 8th… are logged, so that nobody can fill the log."""
        count = self._refused[status] = self._refused.get(status, 0) + 1
        if count & (count - 1) == 0:
            log.warning("webhook_call_refused", status=status, count=count, remote=remote)


class _Server(web.Server):
    """A server with limited connections. One that showed the secret is never ended for another."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._strangers: dict[web.RequestHandler, asyncio.Transport] = {}  # without the secret so far, the oldest first

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """A connection opened."""
        super().connection_made(handler, transport)
        self._strangers[handler] = transport
        alike = [each for each, its in self._strangers.items() if _address(its) == _address(transport)]
        if len(alike) > MOST_STRANGERS:
            self._end(alike[0])
        elif len(self.connections) > MOST_CONNECTED:
            self._end(next(iter(self._strangers)))

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """A connection ended."""
        self._strangers.pop(handler, None)
        super().connection_lost(handler, exc)

    def admit(self, handler: web.RequestHandler) -> None:
        """This connection showed the secret."""
        self._strangers.pop(handler, None)

    def _end(self, handler: web.RequestHandler) -> None:
        # Not at once: the library logs a traceback for a connection that ends before its task has begun.
        asyncio.get_running_loop().call_soon(self._strangers.pop(handler).abort)


def _address(transport: asyncio.Transport) -> object:
    peer = transport.get_extra_info("peername")
    return peer[0] if peer else None
