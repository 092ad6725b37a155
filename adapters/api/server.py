"""Judges requests, and leads each to its route.

Routes are aiohttp's `RouteDef`, whose handlers are given a `BaseRequest`. A part of the path in braces, as in
`/hook/{name}`, stands in `request["name"]`. A route judges by itself who asks; `caller` does it by key.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, cast

from aiohttp import ClientError, web
from aiohttp.http import HttpProcessingError
from msgspec import Struct, field, json

from gateway.domain.adapter import KnowsKeys
from gateway.domain.keys import Key
from gateway.runtime.clock import Clock
from gateway.runtime.door import Door
from gateway.runtime.errors import AdapterError, StoreUnavailable

_PATIENCE: Final = 30.0  # seconds for a head, and for a body that stands still
_BODY: Final = 300.0  # seconds for a whole body
_LAST_WORDS: Final = 1.0  # seconds for running requests at the end
LARGEST: Final = 64_000_000  # bytes of a body
_TYPES: Final = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Problem(Exception):
    """A request is refused with a status and a sentence. `code`, `param` and `retry_after` (seconds) as OpenAI has
    them."""

    def __init__(self, status: int, text: str, *, code: str = "", param: str = "", retry_after: float = 0.0) -> None:
        super().__init__(text)
        self.status, self.code, self.param, self.retry_after = status, code or None, param or None, retry_after


class Server(Struct, kw_only=True):
    """Answers requests at `host` and `port`. `at`: its address, once it listens."""

    host: str
    port: int
    clock: Clock
    keys: KnowsKeys
    at: str = ""
    _routes: list[tuple[str, re.Pattern[str], Answer]] = field(default_factory=list)

    def add(self, routes: Sequence[web.RouteDef]) -> None:
        """Serve these, too."""
        for each in routes:
            pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(each.path))
            self._routes.append((each.method, re.compile(pattern), cast(Answer, each.handler)))

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Answer requests until the block ends. Raises AdapterError if the address cannot be had."""
        door = Door("api", self._asked, self.clock, patience=_PATIENCE)
        try:
            await door.open(host=self.host, port=self.port)
        except (OSError, OverflowError) as error:
            why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
            raise AdapterError(
                f"The API cannot listen at {self.host}:{self.port} ({why}): end the program that has the port, or set "
                "another one in adapters.api.port."
            ) from error
        host = f"[{self.host.strip('[]')}]" if ":" in self.host else self.host
        self.at = f"http://{host}:{door.port}"
        try:
            yield
        finally:
            await door.close(_LAST_WORDS)

    async def _asked(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            response = await self._routed(request)
        except Problem as problem:
            response = refusal(problem)
        except StoreUnavailable:
            text = "The store does not answer just now: try again in a moment."
            response = refusal(Problem(503, text, retry_after=1.0))
        if not response.prepared:
            response.headers.setdefault("Cache-Control", "no-store")
            response.headers.setdefault("X-Content-Type-Options", "nosniff")
            if response.status >= 400 and request.body_exists:
                response.force_close()  # the rest of a body is not read
        return response

    async def _routed(self, request: web.BaseRequest) -> web.StreamResponse:
        there = False
        for method, pattern, answer in self._routes:
            if (found := pattern.fullmatch(request.path)) is not None:
                if method == request.method:
                    for name, value in found.groupdict().items():
                        request[name] = value
                    return await answer(request)
                there = True
        if there:
            raise Problem(405, f"{request.path[:100]} does not take {request.method}.")
        raise Problem(404, f"There is no {request.path[:100]} here.", code="unknown_url")

    async def caller(self, request: web.BaseRequest) -> Key:
        """The key that a request brings. Raises Problem, StoreUnavailable."""
        given = request.headers.getall("Authorization", [])
        scheme, _, secret = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        key = await self.keys.holder(secret.strip()) if scheme.lower() == "bearer" and secret else None
        if key is None:
            text = "This key is not known: `legato keys add NAME` makes one, to be sent as `Authorization: Bearer KEY`."
            raise Problem(401, text, code="invalid_api_key")
        return key


async def body_of(request: web.BaseRequest, clock: Clock, *, most: int = LARGEST) -> bytes:
    """The body of a request, of limited size and in a limited time. Raises Problem."""
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise Problem(415, "Send the body as it is, not compressed.")
    too_large = Problem(413, f"The body is too large: {most:,} bytes are the most.", code="request_too_large")
    if (request.content_length or 0) > most:
        raise too_large
    body = bytearray()
    try:
        async with clock.limit(_BODY):
            async for chunk in request.content.iter_chunked(65_536):
                body += chunk
                if len(body) > most:
                    raise too_large
    except TimeoutError:
        raise Problem(408, "The body took too long to arrive.") from None
    except (RuntimeError, AssertionError, ClientError, web.RequestPayloadError, HttpProcessingError):
        raise Problem(400, "The body cannot be read.") from None
    return bytes(body)


def refusal(problem: Problem) -> web.Response:
    """A refusal in OpenAI's shape."""
    kind = _TYPES.get(problem.status, "server_error" if problem.status >= 500 else "invalid_request_error")
    error = {"message": str(problem), "type": kind, "param": problem.param, "code": problem.code}
    headers = {"Retry-After": f"{max(1, round(problem.retry_after))}"} if problem.retry_after else {}
    return answered({"error": error}, status=problem.status, headers=headers)


def answered(what: Any, *, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    """An answer in JSON."""
    return web.Response(
        body=json.encode(what), status=status, headers={"Content-Type": "application/json", **(headers or {})}
    )
