"""Judges requests, and leads each to its route.

Routes are aiohttp's `RouteDef`, whose handlers are given a `BaseRequest`. A part of the path in braces, as in
`/hook/{name}`, stands in `parts_of(request)["name"]`. A route judges by itself who asks; `caller` does it by key.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final, cast

from aiohttp import ClientError, web
from aiohttp.http import HttpProcessingError
from msgspec import Struct, field

from adapters.api.shapes import ApiError, invalid, no_key, no_route, too_large, unavailable
from gateway.domain.adapter import KnowsKeys
from gateway.domain.keys import LONGEST_USER, Key
from gateway.runtime.clock import Clock
from gateway.runtime.door import MOST_REST, Door
from gateway.runtime.errors import AdapterError, StoreUnavailable

_PATIENCE: Final = 30.0  # seconds for a head, and for a body that stands still
_BODY: Final = 300.0  # seconds for a whole body
_CROWD: Final = 2_000  # connections that wait; those of a front end's people come from one address
_LAST_WORDS: Final = 1.0  # seconds for running requests at the end
_LINGER: Final = 5.0  # seconds for reading the rest of a refused body, without which its answer would not arrive
LARGEST: Final = 64_000_000  # bytes of a body
_SAFE: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
USER: Final = "X-OpenWebUI-User-Id"

# A request that could not be plainer, and what makes one less plain.
_HEAD: Final = re.compile(rb"(?:GET|POST) (/[\w/.-]*) HTTP/1\.1\r\n((?:[\w-]+:[\t -~]*\r\n)+)\r\n", re.ASCII)
_HEADER: Final = re.compile(rb"([\w-]+):([\t -~]*)\r\n", re.ASCII)
_UNUSUAL: Final = frozenset((b"connection", b"content-encoding", b"expect", b"transfer-encoding", b"upgrade"))
_SIZE: Final = re.compile(rb"[0-9]{1,6}")
_BEARER: Final = re.compile(rb"[Bb]earer +([!-~]+)")

_PARTS: Final[web.RequestKey[dict[str, str]]] = web.RequestKey("parts", dict)

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


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
        door = Door(
            "api",
            self._asked,
            self.clock,
            patience=_PATIENCE,
            linger=_LINGER,
            refusal=self.refused,
            crowd=_CROWD,
        )
        try:
            await door.open(host=self.host, port=self.port)
        except (OSError, OverflowError) as error:
            why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else error
            raise AdapterError(
                f"The API cannot listen at {self.host}:{self.port} ({why}). End the program that uses this port, or "
                "set another port in adapters.api.port."
            ) from error
        host = f"[{self.host.strip('[]')}]" if ":" in self.host else self.host
        self.at = f"http://{host}:{door.port}"
        try:
            yield
        finally:
            await door.close(_LAST_WORDS)

    def refused(self, said: bytes) -> bytes | None:
        """The answer to a complete, plain request that no route takes, or whose key nobody has; None for everything
        else."""
        if (head := _HEAD.match(said)) is None:
            return None
        found = [(name.lower(), value.strip()) for name, value in _HEADER.findall(head[2])]
        headers = dict(found)
        size = headers.get(b"content-length", b"0")
        if len(headers) < len(found) or not _UNUSUAL.isdisjoint(headers) or not _SIZE.fullmatch(size):
            return None
        if len(said) != head.end() + int(size):
            return None
        path = head[1].decode()
        if not any(pattern.fullmatch(path) for _, pattern, _ in self._routes):
            return _NO_ROUTE
        bearer = _BEARER.fullmatch(headers.get(b"authorization", b""))
        if path.startswith("/v1/") and bearer and self.keys.is_strange(bearer[1].decode()):
            return _NO_KEY
        return None

    async def _asked(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            response = await self._routed(request)
        except ApiError as error:
            response = refusal(error)
        except StoreUnavailable:
            response = refusal(unavailable("The store does not answer right now. Try again in a moment.", 1))
        if not response.prepared:
            for name, value in _SAFE.items():
                response.headers.setdefault(name, value)
            rest = not request.content.is_eof()
            if (response.status >= 400 and rest and _is_long(request)) or (response.status == 401 and not rest):
                response.force_close()  # the rest of its body is not read; strangers are judged at the door again
        return response

    async def _routed(self, request: web.BaseRequest) -> web.StreamResponse:
        there = False
        for method, pattern, answer in self._routes:
            if (found := pattern.fullmatch(request.path)) is not None:
                if method == request.method:
                    request[_PARTS] = found.groupdict()
                    return await answer(request)
                there = True
        if there:
            raise ApiError(405, f"{request.path[:100]} does not take {request.method}.", code="method_not_allowed")
        raise no_route()

    async def caller(self, request: web.BaseRequest) -> Key:
        """The key that a request brings. Raises ApiError, StoreUnavailable."""
        given = request.headers.getall("Authorization", [])
        scheme, _, secret = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        key = await self.keys.holder(secret.strip()) if scheme.lower() == "bearer" and secret else None
        if key is None:
            raise no_key()
        return key


def _is_long(request: web.BaseRequest) -> bool:
    """Whether a request has more of a body than is worth a new connection."""
    return request.content_length is None or request.content_length > MOST_REST


def parts_of(request: web.BaseRequest) -> Mapping[str, str]:
    """The named parts of a request's path."""
    parts: dict[str, str] = request[_PARTS]
    return parts


async def body_of(request: web.BaseRequest, clock: Clock, *, most: int = LARGEST) -> bytes:
    """The body of a request, of limited size and in a limited time. Raises ApiError."""
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise ApiError(415, "The body is compressed. Send it without compression.", code="unsupported_encoding")
    if (request.content_length or 0) > most:
        raise too_large(most)
    if request.content.is_eof() and (request.content_length or 0) > 0:  # as nearly always
        return request.content.read_nowait()
    try:
        async with clock.limit(_BODY):
            return await request.clone(client_max_size=most).read()
    except web.HTTPRequestEntityTooLarge:
        raise too_large(most) from None
    except TimeoutError:
        raise ApiError(408, "The body took too long to arrive. Send it again.", code="timeout") from None
    except (RuntimeError, AssertionError, ClientError, web.RequestPayloadError, HttpProcessingError):
        raise ApiError(400, "The body cannot be read.") from None


def user_named(user: str, param: str, called: str) -> str:
    """The id of a person as a front end gives it in a field, which a sentence may call so. Raises ApiError."""
    if len(user) > LONGEST_USER or not user.isprintable():
        raise invalid(param, f"{called} must have at most {LONGEST_USER} printable characters.")
    return user


def json_of(body: bytes) -> web.Response:
    """An answer that is JSON already."""
    return web.Response(body=body, headers={"Content-Type": "application/json"})


def refusal(error: ApiError) -> web.Response:
    """A refusal in OpenAI's shape."""
    headers = {"Content-Type": "application/json", **error.headers()}
    return web.Response(body=error.body(), status=error.status, headers=headers)


def _written(error: ApiError) -> bytes:
    """The same as a complete HTTP answer, after which the connection stays."""
    body, headers = error.body(), {"Content-Type": "application/json", **_SAFE, **error.headers()}
    lines = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


_NO_ROUTE: Final = _written(no_route())
_NO_KEY: Final = _written(no_key())
