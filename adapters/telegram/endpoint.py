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
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import unquote

import structlog
from aiohttp import web
from msgspec import Struct

from gateway.runtime.clock import Clock
from gateway.runtime.door import Door
from gateway.runtime.errors import StoreUnavailable

log = structlog.get_logger(__name__)

SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"
MOST_BYTES: Final = 1_048_576  # of one request; an update has a few thousand
_LINGER: Final = 2.0  # seconds for reading the rest of a refused request; else its answer would not arrive
_COME_AGAIN: Final = 2  # seconds: Telegram sends an update again that could not be stored
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

    async def serve(self, begun: Callable[[], object] = lambda: None) -> None:
        """Answer requests until cancelled. Raises AdapterError if the port is taken."""
        self._door = Door(
            "webhook", self._asked, self.clock, patience=self.patience, linger=_LINGER, admits=self._shows_secret
        )
        await self._door.serve(self.host, self.port, "adapters.telegram.webhook", begun)

    async def _asked(self, request: web.BaseRequest) -> web.Response:
        assert self._door is not None, "requests come through it"
        if (status := self._objection(request)) is not None:
            return self._door.refused(status, request)
        body = await self._door.body(request, MOST_BYTES)
        if isinstance(body, web.Response):
            return body
        try:
            update = json.loads(body)
            if not isinstance(update["update_id"], int):
                raise TypeError("an update has a number")
        except (ValueError, LookupError, TypeError, RecursionError):
            return self._door.refused(400, request)
        return await self._answer(update)

    def _objection(self, request: web.BaseRequest) -> int | None:
        """The status for a request whose head alone is wrong; None if it is right."""
        if request.path != unquote(self.path):
            return 404
        given = request.headers.get(SECRET_HEADER, "").encode(errors="surrogateescape")
        if not hmac.compare_digest(given, self.secret.encode()):
            return 401
        packed = request.headers.get("Content-Encoding", "identity") != "identity"
        wrong = packed or request.content_type != "application/json"
        return 415 if wrong and request.method == "POST" else None

    async def _answer(self, update: dict[str, Any]) -> web.Response:
        try:
            await self.take(update)
        except StoreUnavailable as error:
            log.warning("updates_wait", count=1, error=str(error))
            return web.Response(status=503, headers={"Retry-After": str(_COME_AGAIN)})
        return web.Response()

    def _shows_secret(self, head: bytes) -> bool:
        name, begin = head.lower().partition(_NAME)[1], head.lower().find(_NAME) + len(_NAME)
        shown = head[begin : head.find(b"\r\n", begin)].strip(b" \t") if name else b""
        return hmac.compare_digest(shown, self.secret.encode())
