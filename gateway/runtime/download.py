"""Fetches the page at a stranger's address, only from public servers.

The address is checked when its socket is made (`addresses.py`), again for every redirect. No proxy is used, because a
proxy would look names up by itself. One session serves one page, so nothing is remembered between pages. Here aiohttp
is used by itself, and not below httpx as for providers, because only aiohttp lets us make the sockets and read the body
packed.
"""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import Callable, Collection
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from msgspec import Struct, field
from yarl import URL

from gateway.runtime.addresses import PRIVATE, Address, is_public, judge, literal, look_up, lookups
from gateway.runtime.clock import Clock
from gateway.runtime.connections import SlowSocket, slow_socket
from gateway.runtime.errors import ToolError

_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_MOST_REDIRECTS: Final = 5
_CONNECT: Final = 10.0  # seconds
_SILENCE: Final = 10.0  # seconds
_LONGEST_URL: Final = 2_000
_HEAD: Final = 256 * 1024  # bytes on the wire before a page begins, those of encryption included
_WRAPPED: Final = 2  # the bytes of a page on the wire for each of its own: some servers send tiny chunks
_ENDLESS: Final = "it sends much more than a page"


class Download(Struct, frozen=True, kw_only=True):
    """The content of an address. `url`: where redirects led. `mime` is in lower case, `charset` "" if the server
    names none. `cut`: more followed than was read."""

    url: str
    mime: str
    charset: str
    content: bytes
    cut: bool


@dataclass(frozen=True, slots=True)
class _Resolver(AbstractResolver):
    """The system's look-up of names."""

    threads: Executor

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_INET) -> list[ResolveResult]:
        """The addresses of a name. Raises OSError."""
        found = await look_up(host, port, self.threads, family)
        return [
            ResolveResult(
                hostname=host, host=str(where[0]), port=port, family=kind, proto=protocol, flags=socket.AI_NUMERICHOST
            )
            for kind, _, protocol, _, where in found
        ]

    async def close(self) -> None:
        """Nothing is open."""


class Downloader(Struct, frozen=True, kw_only=True):
    """Fetches pages. `most`: bytes of a body, packed and unpacked. `seconds` for all of one page, with its redirects.
    `accepts` decides by the type whether a body is read. A test may have names looked up in another way, and let
    addresses pass that are not public."""

    clock: Clock
    agent: str
    accepts: Callable[[str], bool]
    ports: Collection[int] = (80, 443)
    most: int = 5_000_000
    seconds: float = 20.0
    allows: Callable[[Address], bool] = is_public
    resolver: Callable[[], AbstractResolver] = field(default_factory=lambda: partial(_Resolver, lookups()))

    async def get(self, address: str) -> Download:
        """Fetch what lies at an address. Raises ToolError."""
        url, sockets = self._checked(address), list[SlowSocket]()
        try:
            async with self.clock.limit(self.seconds), self._session(sockets) as session:
                for _ in range(_MOST_REDIRECTS + 1):
                    async with session.get(url, allow_redirects=False) as response:
                        target = response.headers.get("Location")
                        if response.status in _REDIRECTS and target is not None:
                            url = self._checked(target, url)
                            continue
                        for each in sockets:
                            each.left += _WRAPPED * self.most
                        return await self._read(url, response)
                raise ToolError(f"There were more than {_MOST_REDIRECTS} redirects.")
        except TimeoutError as error:
            raise ToolError(f"{url.host} did not answer in time.") from error
        except (aiohttp.ClientError, OSError, ValueError, zlib.error) as error:
            reason = _ENDLESS if any(each.left < 0 for each in sockets) else _reason(error)
            raise ToolError(f"{url.host} cannot be read: {reason}.") from error

    def _checked(self, address: str, base: URL | None = None) -> URL:
        """Raises ToolError for an address that is not to be asked for."""
        try:
            url = URL(address) if base is None else base.join(URL(address))
            host = url.host
            written = literal(url.raw_host or "")
        except ValueError:
            raise ToolError(f"{address[:200]!r} is not a web address.") from None
        if url.scheme not in ("http", "https") or not host or len(str(url)) > _LONGEST_URL:
            raise ToolError(f"{address[:200]!r} is not an address that begins with http:// or https://.")
        if url.user is not None or url.password is not None:
            raise ToolError("Legato does not open addresses that contain a name and a password.")
        if url.port not in self.ports:
            raise ToolError(f"Legato does not use port {url.port} here, only {', '.join(map(str, self.ports))}.")
        if written is not None and not self.allows(written):
            raise ToolError(f"{host} cannot be read: {PRIVATE}.")
        return url.with_fragment(None)

    def _session(self, sockets: list[SlowSocket]) -> aiohttp.ClientSession:
        made = partial(self._socket, sockets)
        connector = aiohttp.TCPConnector(
            resolver=self.resolver(), use_dns_cache=False, socket_factory=made, force_close=True
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT, sock_read=_SILENCE),
            headers={"User-Agent": self.agent, "Accept-Encoding": "identity", "Accept": "text/html, text/*, */*;q=0.5"},
            trust_env=False,
            auto_decompress=False,
        )

    def _socket(self, sockets: list[SlowSocket], place: aiohttp.AddrInfoType) -> SlowSocket:
        """A socket for an address that was looked up, one more of these. Raises OSError for one that is not public."""
        judge(place, self.allows)
        sockets.append(slow_socket(place))
        sockets[-1].left = _HEAD
        return sockets[-1]

    async def _read(self, url: URL, response: aiohttp.ClientResponse) -> Download:
        if not 200 <= response.status < 300:
            phrase = HTTPStatus(response.status).phrase if response.status in _STATUSES else "an unknown status"
            raise ToolError(f"{url.host} answered {response.status} ({phrase}).")
        mime = response.content_type if "Content-Type" in response.headers else ""
        if not self.accepts(mime):
            raise ToolError(f"The address returned the type {mime[:100]}, which cannot be read here.")
        packed = bytearray()
        async for piece in response.content.iter_any():
            packed += piece
            if len(packed) > self.most:
                break
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        content = await asyncio.to_thread(_unpacked, bytes(packed), encoding, self.most + 1)
        return Download(
            url=str(url),
            mime=mime,
            charset=response.charset or "",
            content=content[: self.most],
            cut=len(packed) > self.most or len(content) > self.most,
        )


_STATUSES: Final = frozenset(map(int, HTTPStatus))


def _reason(error: Exception) -> str:
    """Return the error in plain words, without the library's inner life."""
    inner = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    said = inner.strerror if isinstance(inner, OSError) and inner.strerror else str(inner)
    return (said or type(inner).__name__)[:200].rstrip(".")


def _unpacked(packed: bytes, encoding: str, most: int) -> bytes:
    """At most so many bytes of a body. Raises ValueError, zlib.error."""
    if encoding in ("", "identity"):
        return packed
    if encoding in ("gzip", "x-gzip"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(packed, most)
    if encoding == "deflate":
        try:
            return zlib.decompressobj().decompress(packed, most)
        except zlib.error:  # many servers leave the frame out
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most)
    raise ValueError(f"it is packed as {encoding[:40]}, though it was asked for unpacked")
