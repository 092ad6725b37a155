"""The address that Telegram calls. It takes one update a request, and nothing from anybody else.

    request                                  answer
    -------------------------------------    --------------------------------------------------------------
    without the secret, or another path      401 or 404, without a reason; the log counts them
    another method, type, size or shape      405, 415, 413 or 400: the caller knew the secret, so the reason may show
    an update that is stored now             200, also for an update without use here
    an update that cannot be stored now      503 with `Retry-After`: Telegram keeps it and sends it again

Slow connections are ended. A connection reaches the HTTP server once it has shown the secret (`newcomers`). So
strangers can neither keep Telegram out nor use up the program's open files or its time. No body is unpacked: a few
packed bytes can become gigabytes.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import unquote

import structlog
from aiohttp import ClientError, web
from aiohttp.http_exceptions import HttpProcessingError
from msgspec import Struct, field

from adapters.telegram.newcomers import MOST_CONNECTED, SECRET_HEADER, Newcomer, Newcomers
from gateway.runtime.clock import Clock
from gateway.runtime.errors import AdapterError, StoreUnavailable

log = structlog.get_logger(__name__)

MOST_BYTES: Final = 1_048_576  # of one request; an update has a few thousand
_LINGER: Final = 2.0  # seconds for reading the rest of a refused request; else its answer would not arrive
_COME_AGAIN: Final = 2  # seconds: Telegram sends an update again that could not be stored
_LAST_WORDS: Final = 3.0  # seconds for the running requests when the endpoint closes
_AT_ONCE: Final = 8  # new connections in one pass of the loop: a crowd of them must not hold up a call

Take = Callable[[dict[str, Any]], Awaitable[None]]


class WebhookEndpoint(Struct, kw_only=True):
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

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Answer requests until the block ends, and those that run then. Raises AdapterError if the port is taken."""
        logger = logging.Logger("aiohttp.server")  # not the shared one: the filter is for this endpoint alone
        logger.parent = logging.getLogger(logger.name)
        logger.addFilter(self._is_news)
        server = web.Server(
            self._asked,
            keepalive_timeout=self.patience,
            lingering_time=_LINGER,
            access_log=None,
            logger=logger,
            auto_decompress=False,
        )
        newcomers = Newcomers(server, self.secret, self.patience, self._count)
        listener: asyncio.Server | None = None
        try:
            # The workers of one host share the port; the system spreads the requests over them.
            listener = await asyncio.get_running_loop().create_server(
                lambda: Newcomer(newcomers), self.host, self.port, reuse_port=True, backlog=_AT_ONCE
            )
            for each in listener.sockets:  # so many may wait in the system, of which `_AT_ONCE` are taken at a time
                with each.dup() as same:
                    same.listen(MOST_CONNECTED)
            log.info("webhook_listens", host=self.host, port=self.port, path=self.path)
            yield
        except OSError as error:
            raise AdapterError(
                f"Telegram's webhook cannot listen at {self.host}:{self.port} ({error.strerror or error}); free that "
                "port, or set another in adapters.telegram.webhook."
            ) from error
        finally:
            if listener is not None:
                listener.close()
            newcomers.close()
            server.pre_shutdown()
            await server.shutdown(_LAST_WORDS)

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
        """Say whether a line of the library is logged. A request that is no HTTP is counted like other refused ones."""
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
