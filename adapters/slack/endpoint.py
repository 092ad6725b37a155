"""The address that Slack calls: https://docs.slack.dev/apis/events-api/using-http-request-urls

Each request is signed (https://docs.slack.dev/authentication/verifying-requests-from-slack). An event that is stored is
answered with 200. One that cannot be stored in time gets 503, and Slack sends it again, three times.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import parse_qs

from aiohttp import web
from slack_sdk.signature import SignatureVerifier

from adapters.slack.platform import Events
from gateway.runtime.clock import Clock
from gateway.runtime.door import Door

_MOST_BYTES: Final = 1_048_576
_PATIENCE: Final = 15.0  # seconds for a request's head, and for a body that stands still
_ANSWERED_IN: Final = 2.8  # seconds: Slack waits three
_SIGNATURE: Final = b"\r\nx-slack-signature: v0="


class EventEndpoint:
    """Listens at `settings`. `heard`: as of Socket Mode. `begun` is called once it listens."""

    def __init__(
        self,
        settings: Events,
        clock: Clock,
        heard: Callable[[str, dict[str, Any]], Awaitable[dict[str, Any] | None]],
        begun: Callable[[], None],
    ) -> None:
        assert settings.secret is not None, "the configuration sees to it that there is one"
        self._settings, self._clock, self._heard, self._begun = settings, clock, heard, begun
        self._verifier = SignatureVerifier(settings.secret.get_secret_value().strip(), clock)  # type: ignore[arg-type]

    async def serve(self) -> None:
        """Answer requests until cancelled. Raises AdapterError if the port is taken."""
        self._door = Door(
            "slack", self._asked, self._clock, patience=_PATIENCE, admits=lambda head: _SIGNATURE in head.lower()
        )
        await self._door.serve(self._settings.host, self._settings.port, "adapters.slack.http", self._begun)

    async def _asked(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await self._door.body(request, _MOST_BYTES)
        if isinstance(body, web.Response):
            return body
        try:
            signed = self._verifier.is_valid_request(body, dict(request.headers))
        except (TypeError, ValueError):
            signed = False
        if not signed:
            return self._door.refused(401, request)
        try:
            kind, payload = _read(body, request.content_type)
        except (ValueError, LookupError, TypeError, RecursionError):
            return self._door.refused(400, request)
        if kind == "url_verification":
            return web.json_response({"challenge": payload["challenge"]})
        try:
            async with self._clock.limit(_ANSWERED_IN):
                said = await self._heard(kind, payload)
        except TimeoutError:
            return web.Response(status=503)
        return web.json_response(said) if said else web.Response()


def _read(body: bytes, content_type: str) -> tuple[str, dict[str, Any]]:
    """The kind of a request, as Socket Mode names it, and what it brings. Raises ValueError or LookupError."""
    if content_type == "application/json":
        payload = json.loads(body)
        return ("url_verification" if payload["type"] == "url_verification" else "events_api"), payload
    form = {name: values[0] for name, values in parse_qs(body.decode()).items()}
    if "payload" in form:
        return "interactive", json.loads(form["payload"])
    return "slash_commands", {"channel_id": form["channel_id"], "trigger_id": form["trigger_id"], **form}
