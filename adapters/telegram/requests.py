"""The library's way to Telegram, which may lead through a proxy.

What stands between here and Telegram answers with pages of its own: 502 while a server restarts, 403 where a
firm wants none of this. The library takes them for Telegram's, so that a firm's 403 would mean that the bot
was blocked and its 401 that the token is wrong. Telegram's own answers are JSON, whatever they say.

All connections are of `runtime.connections`, but for those by a SOCKS proxy, which only httpx's own pool can use.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import nullcontext
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx
import structlog
from telegram.error import EndPointNotFound, NetworkError, TelegramError, TimedOut
from telegram.request import HTTPXRequest, RequestData

from gateway.runtime.connections import POOL_TIMEOUT, Pool, trusting
from gateway.runtime.errors import ConfigError

log = structlog.get_logger(__name__)

_SOCKS: Final = (
    "Legato is set to reach Telegram through a SOCKS proxy, which needs one more package. Run pip install "
    "'httpx[socks]'. Or name an http:// proxy in adapters.telegram.proxy, HTTPS_PROXY or ALL_PROXY."
)


_UNUSABLE: Final = (
    "The address of the proxy to Telegram must begin with http://, https:// or socks5://. Write a slash in the "
    "password as %2F. Correct adapters.telegram.proxy, HTTPS_PROXY or ALL_PROXY."
)
_KEEPALIVE: Final = 5.0  # seconds
_UPLOAD_SECONDS: Final = 300.0


def way(server: str, proxy: str | None, *, most: int) -> dict[str, Any]:
    """The arguments by which a client of httpx goes to a server, with so many connections at most. `proxy` None: as
    HTTPS_PROXY, ALL_PROXY and NO_PROXY of the environment say. Raises ConfigError for a proxy that cannot be used."""
    try:
        through = None if (url := proxy or _of_environment(server)) is None else httpx.Proxy(url)
    except (ValueError, httpx.InvalidURL) as error:
        raise ConfigError([_UNUSABLE]) from error
    if through is not None and through.url.scheme.startswith("socks"):
        return {"proxy": through, "limits": httpx.Limits(max_connections=most), "verify": trusting()}
    return {"transport": Pool(trusts=trusting(), most=most, keepalive=_KEEPALIVE, proxy=through)}


def _of_environment(server: str) -> str | None:
    parts, proxies = urlsplit(server), getproxies()
    url = proxies.get(parts.scheme) or proxies.get("all")
    if not url or proxy_bypass(parts.hostname or ""):
        return None
    return url if "://" in url else f"http://{url}"


class TelegramRequest(HTTPXRequest):
    """Connections to Telegram. `how`: as `way` says. `patience`: seconds for an answer. Raises ConfigError for a proxy
    that cannot be used."""

    __slots__ = ("_headers", "_pool", "_urls")

    def __init__(self, how: dict[str, Any], *, patience: float) -> None:
        self._urls: dict[str, Any] = {}  # of the few methods that are called, read once
        try:
            super().__init__(httpx_kwargs=how, read_timeout=patience, pool_timeout=POOL_TIMEOUT)
        except RuntimeError as error:  # of a package that is not there
            raise ConfigError([_SOCKS]) from error
        self._pool: Pool | None = how.get("transport")
        kind = {"User-Agent": self.USER_AGENT, "Content-Type": "application/x-www-form-urlencoded"}
        self._headers = httpx.Headers({**self._client.headers, **kind})

    async def do_request(
        self, url: str, method: str, request_data: RequestData | None = None, *arguments: Any, **timeouts: Any
    ) -> tuple[int, bytes]:
        """As the library's, which takes a method that the server does not know for a wrong token: this raises
        EndPointNotFound. Raises NetworkError if somebody on the way answered in Telegram's place."""
        # The pool sets no limit to the writing of a file.
        read = self._urls.get(url) or self._urls.setdefault(url, httpx.URL(url))
        limit = _UPLOAD_SECONDS if request_data is not None and request_data.contains_files else None
        try:
            if self._pool is None or limit is not None or arguments or self._client.is_closed:
                async with nullcontext() if limit is None else asyncio.timeout(limit):
                    status, answer = await super().do_request(read, method, request_data, *arguments, **timeouts)
            else:
                status, answer = await self._asked(self._pool, read, method, request_data, timeouts)
        except TimeoutError as error:
            raise TimedOut from error
        except NetworkError as error:
            cause = error.__cause__.__cause__ if error.__cause__ is not None else None
            if not isinstance(cause, aiohttp.ClientError):
                raise
            # httpx-aiohttp calls every broken connection a ConnectTimeout, as if nothing had left.
            raise NetworkError(f"{type(cause).__name__}: {cause}") from cause
        if status >= HTTPStatus.MULTIPLE_CHOICES and not answer.lstrip().startswith(b"{"):
            log.warning("not_telegrams_answer", status=status, size=len(answer))
            raise NetworkError(_named(status))
        asked = url.rpartition("/")[2]
        if status == HTTPStatus.NOT_FOUND and asked != "getMe":  # of a malformed token getMe, the first call, says so
            raise EndPointNotFound(f"The server of Telegram's Bot API does not know the method {asked}")
        return status, answer

    async def _asked(
        self, pool: Pool, url: httpx.URL, method: str, data: RequestData | None, timeouts: Mapping[str, Any]
    ) -> tuple[int, bytes]:
        """The same of the pool itself: what httpx's client does beside it (cookies, redirects, logins, hooks) nobody
        wants here, and it takes half as long as the call."""
        timeout = self._client.timeout.as_dict()
        for name in timeout:
            given = timeouts.get(f"{name}_timeout", self.DEFAULT_NONE)
            if not isinstance(given, type(self.DEFAULT_NONE)):
                timeout[name] = given
        body = httpx.ByteStream(b"" if data is None else urlencode(data.json_parameters).encode())
        request = httpx.Request(method, url, headers=self._headers, stream=body, extensions={"timeout": timeout})
        request.read()  # else it would go out in chunks
        try:
            response = await pool.handle_async_request(request)
            try:
                return response.status_code, await response.aread()
            finally:
                await response.aclose()
        except httpx.TimeoutException as error:
            raise TimedOut from error
        except httpx.HTTPError as error:
            raise NetworkError(f"httpx.{type(error).__name__}: {error}") from error

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        """As the library's, which would log the whole page and a traceback. Raises TelegramError."""
        try:
            read = json.loads(payload.decode(errors="replace"))
        except ValueError as error:
            log.warning("unreadable_answer", size=len(payload))
            raise TelegramError("Invalid server response") from error
        if not isinstance(read, dict):
            raise TelegramError("Invalid server response")
        return read


def _named(status: int) -> str:
    try:
        return f"{HTTPStatus(status).phrase} ({status})"
    except ValueError:
        return f"unknown status {status}"
