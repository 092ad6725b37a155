"""The address that Telegram calls. It takes one update a request, and nothing from anybody else.

    request                                  answer
    -------------------------------------    --------------------------------------------------------------
    without the secret, or another path      401 or 404, without a reason; the log counts them
    another method, type, size or shape      405, 415, 413 or 400: the caller knew the secret, so the reason may show
    an update that is stored now             200, also for an update without use here
    an update that cannot be stored now      503 with `Retry-After`: Telegram keeps it and sends it again

A connection reaches the HTTP server once it has shown the secret, and the door (`runtime/door.py`) ends slow ones. So
strangers can neither keep Telegram out nor use up the program's open files or its time.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import unquote

import structlog
from aiohttp import ClientError, web
from msgspec import Struct

from gateway.runtime.clock import Clock
from gateway.runtime.door import Door
from gateway.runtime.errors import AdapterError, StoreUnavailable

log = structlog.get_logger(__name__)

SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"
MOST_BYTES: Final = 1_048_576  # of one request; an update has a few thousand
_LINGER: Final = 2.0  # seconds for reading the rest of a refused request; else its answer would not arrive
_COME_AGAIN: Final = 2  # seconds: Telegram sends an update again that could not be stored
_LAST_WORDS: Final = 3.0  # seconds for the running requests when the endpoint closes
_NAME: Final = f"\r\n{SECRET_HEADER}:".lower().encode()

Take = Callable[[dict[str, Any]], Awaitable[None]]


class WebhookEndpoint(Struct, kw_only=True):
    """Listens at `host`, `port` and `path`. `take` stores an update, and raises StoreUnavailable while the store is
    away. `patience`: seconds for a request's head, and for a body that stands still."""

    host: str
    port: int
    path: str
    secret: str
    clock: Clock
    take: Take
    patience: float = 15.0
    _door: Door | None = None

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Answer requests until the block ends, and those that run then. Raises AdapterError if the port is taken."""
        self._door = door = Door(
            "webhook", self._asked, self.clock, patience=self.patience, linger=_LINGER, admits=self._shows_secret
        )
        try:  # the workers of one host share the port; the system spreads the requests over them
            await door.open(host=self.host, port=self.port, reuse_port=True)
        except OSError as error:
            raise AdapterError(
                f"Telegram's webhook cannot listen at {self.host}:{self.port} ({error.strerror or error}); free that "
                "port, or set another in adapters.telegram.webhook."
            ) from error
        log.info("webhook_listens", host=self.host, port=self.port, path=self.path)
        try:
            yield
        finally:
            await door.close(_LAST_WORDS)

    async def _asked(self, request: web.BaseRequest) -> web.Response:
        status = self._objection(request)
        if status is None:
            status, update = await self._read(request)
            if update is not None:
                return await self._answer(update)
        assert self._door is not None, "requests come through it"
        return self._door.refused(status, request)

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
            update = json.loads(await request.read())
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

    def _shows_secret(self, head: bytes) -> bool:
        begin = head.lower().find(_NAME) + len(_NAME)
        shown = head[begin : head.find(b"\r\n", begin)].strip(b" \t") if begin >= len(_NAME) else b""
        return hmac.compare_digest(shown, self.secret.encode())
