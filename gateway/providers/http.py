"""The one HTTP client that all providers share, and the meaning of its failures.

httpx speaks through aiohttp's connection pool (`runtime.connections`): with a hundred concurrent streams httpx's own
costs about eight times the CPU. The price is a second family of exceptions: httpx-aiohttp
translates most of aiohttp's, some of them misleadingly (a dropped connection arrives as a
`ConnectTimeout`), and lets a few through. `transport_error` knows both families.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import lru_cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Final
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx

from gateway.providers.base import READ_TIMEOUT
from gateway.runtime.connections import POOL_TIMEOUT, Pool, trusting
from gateway.runtime.errors import ProviderError, ProviderRejected, ProviderUnavailable

CONNECT_TIMEOUT: Final = 10.0  # seconds to open a connection
MAX_CONNECTIONS: Final = 512  # twice the default number of concurrent turns
_READABLE: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_AT_ONCE: Final = 256 * 1024  # bytes of a body that are written in one go
KEEPALIVE: Final = 15.0  # seconds; shorter than the servers', or a POST meets a closed connection

_SCHEMES: Final = ("http", "https")
_NO_PROXY_HERE: Final = (
    "Legato cannot reach models through the proxy that the environment names ({kind}). Name an http:// proxy in "
    "HTTPS_PROXY or ALL_PROXY, or the model's host in NO_PROXY."
)
_NO_PROXY_THERE: Final = (
    "The model cannot be reached through the proxy that the environment names ({cause}). Try again later, or check the "
    "proxy in HTTPS_PROXY or ALL_PROXY. To go without the proxy, name the model's host in NO_PROXY."
)
# Models on this very machine are never reached through a proxy that the environment names.
_LOOPBACK: Final = ("all://127.0.0.1", "all://localhost", "all://[::1]")

FOREIGN_ERRORS: Final = (
    httpx.HTTPError,
    httpx.InvalidURL,
    httpx.StreamError,
    httpx.CookieConflict,
    aiohttp.ClientError,
    aiohttp.http_exceptions.HttpProcessingError,
    OSError,
    UnicodeError,  # a host name that cannot be encoded
)
"""All that a call through `http_client` may raise; `transport_error` maps each of them."""

_BAD_ADDRESS: Final = (
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
    httpx.InvalidURL,
    aiohttp.InvalidURL,
    UnicodeError,
)
_NOT_ASKED: Final = (aiohttp.ConnectionTimeoutError, httpx.ConnectTimeout, httpx.PoolTimeout)
_UNREADABLE: Final = (
    httpx.ProtocolError,
    httpx.DecodingError,
    httpx.StreamError,
    aiohttp.ClientResponseError,
    aiohttp.http_exceptions.HttpProcessingError,
)


def http_client(*, read_timeout: float = READ_TIMEOUT) -> httpx.AsyncClient:
    """A client for all providers. Call it inside a running event loop; close it once.

    Proxies named by the environment (HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY) are used, except for loopback.
    Redirects are not followed: a POST would silently become a GET.
    """
    direct, named = _transport(), getproxies()
    proxies = {scheme: url for scheme in _SCHEMES if (url := named.get(scheme) or named.get("all"))}
    through: dict[str, httpx.AsyncBaseTransport] = {
        f"{scheme}://": _ByProxy(url, direct) for scheme, url in proxies.items()
    }
    return httpx.AsyncClient(
        transport=direct,
        mounts={**through, **dict.fromkeys(_LOOPBACK, direct)},
        timeout=httpx.Timeout(read_timeout, connect=CONNECT_TIMEOUT, pool=POOL_TIMEOUT),
        follow_redirects=False,
        headers={"Accept-Encoding": "identity"},  # a few packed bytes could fill the memory
        # No cookies: sessions of different people share this client. httpx keeps a jar of its own.
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
    )


def _transport(proxy: httpx.Proxy | None = None) -> Pool:
    return Pool(trusts=trusting(), most=MAX_CONNECTIONS, keepalive=KEEPALIVE, proxy=proxy)


class _ByProxy(httpx.AsyncBaseTransport):
    """Uses a proxy of the environment, except for hosts that NO_PROXY names."""

    def __init__(self, url: str, direct: Pool) -> None:
        self._direct = direct
        self._kind, _, _ = url.rpartition("://")
        try:
            proxy = httpx.Proxy(url if self._kind else f"http://{url}")
        except (ValueError, httpx.InvalidURL):
            proxy = None
        usable = proxy is not None and proxy.url.scheme in _SCHEMES
        self._pool = _transport(proxy) if usable else None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises ProviderRejected for a proxy that cannot be used."""
        if proxy_bypass(request.url.host):
            return await self._direct.handle_async_request(request)
        if self._pool is None:
            raise ProviderRejected(_NO_PROXY_HERE.format(kind=self._kind or "not an address"))
        return await self._pool.handle_async_request(request)

    async def aclose(self) -> None:
        if self._pool is not None:
            await self._pool.aclose()


async def posted(
    client: httpx.AsyncClient, url: httpx.URL, headers: Mapping[str, str], pieces: Sequence[bytes], read_timeout: float
) -> httpx.Response:
    """Post bytes, and return the response when its head is there; it is to be closed. The client's own transport is
    asked: what the client does beside it (cookies, redirects, logins, hooks) nobody wants here, and it costs as much as
    the call. A body with pictures is handed over piece by piece: written at once, megabytes would hold up everybody
    else on the event loop. `pieces`: the body."""
    extensions = {"timeout": {**client.timeout.as_dict(), "read": read_timeout}}
    together = _together(tuple(client.headers.raw), tuple(headers.items()))
    size = sum(map(len, pieces))
    stream = httpx.ByteStream(b"".join(pieces)) if size <= _AT_ONCE else _Pieces(pieces)
    request = httpx.Request("POST", url, headers=together, stream=stream, extensions=extensions)
    request.headers["Content-Length"] = str(size)
    if isinstance(stream, httpx.ByteStream):
        request.read()  # else the transport would take it for a stream
    response = await client._transport_for_url(url).handle_async_request(request)
    response.request = request
    return response


@lru_cache(maxsize=64)
def _together(usual: tuple[tuple[bytes, bytes], ...], own: tuple[tuple[str, str], ...]) -> httpx.Headers:
    """The headers of a call, which are nearly always those of the call before."""
    named = {name.lower().encode(): (name.encode(), value.encode()) for name, value in own}
    return httpx.Headers([*(each for each in usual if each[0].lower() not in named), *named.values()])


def transport_error(error: BaseException, redact: Callable[[str], str] = str) -> ProviderError:
    """Return the gateway's error for a failure below HTTP: ProviderUnavailable, or ProviderRejected where the address
    is wrong and trying again is pointless. The detail in the text is redacted."""
    if isinstance(error, _BAD_ADDRESS):
        return ProviderRejected(f"The model's address cannot be used ({_detail(error, redact)}). Check model.base_url.")
    if isinstance(error, httpx.TooManyRedirects):
        return ProviderRejected("The address of the model redirects in circles. Check model.base_url.")
    if _timed_out(error):
        asked = not isinstance(error.__cause__ or error, _NOT_ASKED)
        return ProviderUnavailable("The model did not answer in time. Try again.", timed_out=True, billable=asked)
    if isinstance(error, _UNREADABLE):
        return ProviderUnavailable(
            f"Legato could not read the model's answer ({_detail(error, redact)}). Try again.", malformed=True
        )
    if isinstance(error.__cause__, aiohttp.ClientPayloadError):
        return ProviderUnavailable("The connection to the model broke in the middle of its answer. Try again later.")
    cause = _detail(error, redact)
    if isinstance(error.__cause__, (aiohttp.ClientProxyConnectionError, aiohttp.ClientHttpProxyError)):
        return ProviderUnavailable(_NO_PROXY_THERE.format(cause=cause))
    if isinstance(error.__cause__, aiohttp.ClientConnectorError):  # nothing was there to answer: often a mistake
        return ProviderUnavailable(
            f"The model cannot be reached ({cause}). Try again later, or check that the model's server runs at "
            "model.base_url."
        )
    return ProviderUnavailable(f"The model cannot be reached ({cause}). Try again later.")


def _timed_out(error: BaseException) -> bool:
    # httpx-aiohttp gives every ClientConnectionError the name ConnectTimeout; its cause tells the truth.
    cause = error.__cause__
    if isinstance(cause, aiohttp.ClientError):
        return isinstance(cause, TimeoutError)
    return isinstance(error, (httpx.TimeoutException, TimeoutError))


def _detail(error: BaseException, redact: Callable[[str], str]) -> str:
    cause = error.__cause__
    # An address that nobody listens at is the mistake that is made most: say it without aiohttp's inner life.
    if isinstance(cause, aiohttp.ClientConnectorError) and isinstance(cause.os_error, ConnectionError):
        return redact(f"{cause.host}:{cause.port}: {os.strerror(cause.os_error.errno or 0).lower()}")
    if isinstance(cause, aiohttp.ClientHttpProxyError):
        url = cause.request_info.real_url
        return redact(f"{url.host}:{url.port} answered {cause.status} {cause.message}")
    text = " ".join(str(error).replace("ssl:default ", "").split())
    return redact(text)[:160] or type(error).__name__


class _Pieces(httpx.AsyncByteStream):
    def __init__(self, pieces: Sequence[bytes]) -> None:
        self._pieces = pieces

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            for first in range(0, len(piece), _AT_ONCE):
                yield piece[first : first + _AT_ONCE]


def json_bytes(data: Any) -> bytes:
    """`data` as UTF-8 JSON that every server can parse.

    Lone surrogates (half an emoji, cut by a platform) become U+FFFD: they have no UTF-8 form, and
    their escapes are refused by strict parsers. NUL characters, which servers written in C take
    for the end of the text, are left out. Raises ProviderRejected for values that JSON cannot express.
    """
    try:
        text = _READABLE.encode(data)
        if "\\u0000" in text:
            text = _READABLE.encode(_without_nul(data))
    except (TypeError, ValueError, RecursionError) as error:
        raise ProviderRejected(f"Legato cannot write the request as JSON: {error}.") from error
    try:
        return text.encode()
    except UnicodeEncodeError:
        # Surrogates that do belong together are joined on the way.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _without_nul(data: Any) -> Any:
    if isinstance(data, str):
        return data.replace("\x00", "")
    if isinstance(data, dict):
        return {_without_nul(key): _without_nul(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_without_nul(item) for item in data]
    return data
