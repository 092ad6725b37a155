"""The address that Meta calls: https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks

Each call is signed with the app's secret. What is stored is answered with 200. What cannot be stored in time gets 503,
and Meta brings it again, for seven days.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Callable, Coroutine
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from aiohttp import web

from adapters.whatsapp.platform import WhatsAppSettings
from gateway.runtime.clock import Clock
from gateway.runtime.door import Door

_SIGNATURE: Final = "X-Hub-Signature-256"
_SIGNED: Final = f"\r\n{_SIGNATURE}: sha256=".lower().encode()
_MOST_BYTES: Final = 3_145_728  # of one call
_PATIENCE: Final = 15.0  # seconds for a head, and for a body that stands still
_ANSWERED_IN: Final = 5.0  # seconds

Heard = Callable[[dict[str, Any]], Coroutine[Any, Any, None]]


class Endpoint:
    """Listens. `heard` stores what a call brings."""

    def __init__(self, settings: WhatsAppSettings, clock: Clock, heard: Heard) -> None:
        assert settings.secret is not None, "the configuration sees to it that there is one"
        assert settings.url is not None, "the configuration sees to it that there is one"
        self._settings, self._clock, self._heard = settings, clock, heard
        self._storing: set[asyncio.Task[None]] = set()
        self._secret = settings.secret.get_secret_value().strip()
        self._path = unquote(urlsplit(settings.url).path or "/")
        self.verify_token = _digest(self._secret, b"the verify token of its webhook")[:32]

    async def serve(self) -> None:
        """Answer calls until cancelled. Raises AdapterError if the port is taken."""
        self._door = Door("whatsapp", self._asked, self._clock, patience=_PATIENCE, admits=_may_be_metas)
        try:
            await self._door.serve(self._settings.host, self._settings.port, "adapters.whatsapp")
        finally:
            for task in self._storing:
                task.cancel()

    async def _asked(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != self._path:
            return self._door.refused(404, request)
        if request.method == "GET":
            shown = request.query.get("hub.verify_token", "").encode(errors="replace")
            if not hmac.compare_digest(shown, self.verify_token.encode()):
                return self._door.refused(403, request)
            return web.Response(text=request.query.get("hub.challenge", ""))
        body = await self._door.body(request, _MOST_BYTES)
        return body if isinstance(body, web.Response) else await self._called(request, body)

    async def _called(self, request: web.BaseRequest, body: bytes) -> web.Response:
        shown = request.headers.get(_SIGNATURE, "").encode(errors="replace")
        if not hmac.compare_digest(shown, f"sha256={_digest(self._secret, body)}".encode()):
            return self._door.refused(401, request)
        try:
            payload = json.loads(body)
            if not isinstance(payload, dict):
                raise ValueError("it is not an object")
        except (ValueError, RecursionError):
            return self._door.refused(400, request)
        storing = asyncio.get_running_loop().create_task(self._heard(payload))
        self._storing.add(storing)
        storing.add_done_callback(self._storing.discard)
        try:
            async with self._clock.limit(_ANSWERED_IN):  # what is cut off while it is stored may never be worked on
                await asyncio.shield(storing)
        except TimeoutError:
            return web.Response(status=503)
        return web.Response()


def _may_be_metas(head: bytes) -> bool:
    return _SIGNED in head.lower() or (head.startswith(b"GET ") and b"hub.verify_token=" in head)


def _digest(secret: str, body: bytes) -> str:
    return hmac.new(secret.encode(), body, "sha256").hexdigest()
