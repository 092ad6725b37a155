"""Pools of HTTP connections that lose none to a cancelled call.

httpx's own pool (httpcore 1.0.9) never takes back the place of a call that is cancelled while its connection is being
opened. Every "typing…" that is no longer needed can cost a place. When all are gone, no call leaves any more, and
nothing says so. aiohttp's pool takes places back: calls were cancelled at each turn of the loop, with a cold, warm or
full pool, and none left anything behind. So httpx speaks through aiohttp's pool here.
"""

from __future__ import annotations

import os
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Mapping
from errno import EMSGSIZE
from functools import lru_cache
from math import inf
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import httpx
import msgspec
from httpx_aiohttp import AiohttpTransport

from gateway.runtime.errors import Ambiguous, Disconnected, FileRefused

_CONNECTIONS: Final = 64  # of calls of a platform
_KEEPALIVE: Final = 30.0  # seconds
POOL_TIMEOUT: Final = 60.0  # seconds to get a connection, opening it included


def trusting() -> ssl.SSLContext:
    """The certificates that connections trust. Reading the certificates takes longer than anything else about a
    client, so all share them, for as long as the environment names the same ones."""
    return _read_certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=1)
def _read_certificates(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    return httpx.create_ssl_context()


NEVER_LEFT: Final = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.ClientProxyConnectionError)
"""The errors of calls that did not leave this machine, by whatever library."""


async def at_most(chunks: AsyncIterator[bytes], most: int) -> bytes | None:
    """What comes, whatever its size was said to be; None: it is more than so many bytes."""
    content = bytearray()
    async for chunk in chunks:
        content += chunk
        if len(content) > most:
            return None
    return bytes(content)


def too_large(most: int) -> FileRefused:
    """The refusal of a file that has more than so many bytes."""
    return FileRefused(f"it is larger than the {most // 1024**2} MB that I fetch")


class Answer(NamedTuple):
    """The answer to a call. Names of headers count in any case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def told(self) -> Mapping[str, Any]:
        """The JSON object that it is; empty where it is none."""
        try:
            told = msgspec.json.decode(self.content)
        except (msgspec.DecodeError, RecursionError):
            return {}
        return told if isinstance(told, dict) else {}


def seconds_in(headers: Mapping[str, str], otherwise: float) -> float:
    """The pause that the headers of an answer ask for; `otherwise`: where they do not say how long."""
    asked = str(headers.get("Retry-After", ""))
    return float(asked) if asked.isdecimal() else otherwise


class ApiCalls:
    """Calls of a platform's API. `server`: what people call it; "": by its address. `hint`: what
    to look at where it cannot be reached."""

    def __init__(self, server: str = "", *, hint: str = "check the network", proxy: str | None) -> None:
        self._server, self._hint = server, hint
        way = httpx.Proxy(proxy) if proxy else None
        self._pool = Pool(trusts=trusting(), most=_CONNECTIONS, keepalive=_KEEPALIVE, proxy=way)
        self._http = httpx.AsyncClient(transport=self._pool)

    async def __call__(
        self,
        method: str,
        address: str,
        *,
        patience: float,
        most: int | None = None,
        headers: Mapping[str, str] | None = None,
        follow_redirects: bool = False,
        **how: Any,
    ) -> Answer:
        """The answer, whatever it says. `patience`: seconds for it; `most`: bytes of a file; `how`: as in httpx. Raises
        Disconnected, Ambiguous, or FileRefused.

        The pool itself is asked: what httpx's client does beside it (cookies, logins, hooks) costs as much as a call.
        """
        timeout = httpx.Timeout(patience, pool=POOL_TIMEOUT).as_dict()
        sent = {**self._http.headers, **(headers or {})}
        request = httpx.Request(method, address, headers=sent, extensions={"timeout": timeout}, **how)
        try:
            if follow_redirects:
                response = await self._http.send(request, stream=True, follow_redirects=True)
            else:
                response = await self._pool.handle_async_request(request)
            try:
                content = await at_most(response.aiter_bytes(), sys.maxsize if most is None else most)
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            told = str(error) or type(error).__name__
            if isinstance(error.__cause__, NEVER_LEFT):
                where = self._server or "://".join(urlsplit(address)[:2])
                raise Disconnected(f"{where} cannot be reached ({told}): {self._hint}") from error
            raise Ambiguous(f"{self._server or 'The server'}'s answer was lost ({told}).") from error
        if content is None:
            raise too_large(most or 0)
        return Answer(response.status_code, response.headers, content)

    async def aclose(self) -> None:
        await self._http.aclose()


class Pool(AiohttpTransport):
    """A transport for httpx. `most`: connections. `keepalive`: seconds for which an idle one is kept."""

    def __init__(
        self, *, trusts: ssl.SSLContext, most: int, keepalive: float, proxy: httpx.Proxy | None = None
    ) -> None:
        super().__init__(verify=trusts, proxy=proxy, client=self._begun)
        self._most = most
        self._keepalive = keepalive

    @property
    def in_use(self) -> int:
        """Return the number of connections that calls have right now."""
        connector = self.client.connector if isinstance(self.client, aiohttp.ClientSession) else None
        return len(connector._acquired) if connector is not None else 0

    def _begun(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            ssl=self.ssl_context, limit=self._most, keepalive_timeout=self._keepalive, socket_factory=slow_socket
        )
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    async def aclose(self) -> None:
        """Close the connections. A call after this begins the pool again."""
        if isinstance(self.client, aiohttp.ClientSession):
            await self.client.close()
        self.client = self._begun


# -- sockets of which little is read at once -----------------------------------------------------------


AT_ONCE: Final = 16_384  # bytes


class SlowSocket(socket.socket):
    """A socket that gives at most `AT_ONCE` bytes at once, and `left` in all. Reading raises OSError beyond these."""

    left: float = inf

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Read as `socket.recv` does."""
        data = super().recv(min(size, AT_ONCE), flags)
        self._take(len(data))
        return data

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0, /) -> int:
        """Read as `socket.recv_into` does; asyncio reads what is encrypted so."""
        taken = super().recv_into(buffer, min(size or len(buffer), AT_ONCE), flags)
        self._take(taken)
        return taken

    def _take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise OSError(EMSGSIZE, "it sends more than an answer takes")


def slow_socket(place: tuple[Any, ...]) -> SlowSocket:
    """A socket for an address that was looked up (`socket.getaddrinfo`)."""
    family, kind, protocol, *_ = place
    return SlowSocket(family=family, type=kind, proto=protocol)
