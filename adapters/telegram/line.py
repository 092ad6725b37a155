"""The library's way to Telegram, which may lead through a proxy.

What stands between here and Telegram answers with pages of its own: 502 while a server restarts, 403 where a
firm wants none of this. The library takes them for Telegram's, so that a firm's 403 would mean that the bot
was blocked and its 401 that the token is wrong. Telegram's own answers are JSON, whatever they say.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

import httpx
import structlog
from telegram.error import NetworkError, TelegramError
from telegram.request import HTTPXRequest

from gateway.runtime.errors import ConfigError

log = structlog.get_logger(__name__)

_SOCKS: Final = (
    "Telegram is to be reached through a SOCKS proxy, which needs another package: run pip install 'httpx[socks]', or "
    "name an http:// proxy in adapters.telegram.proxy, HTTPS_PROXY or ALL_PROXY."
)


def trusting() -> ssl.SSLContext:
    """The certificates that connections trust. To read the certificates takes long, so all share them, for as long as
    the environment names the same ones."""
    return _read_certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))


@lru_cache(maxsize=1)
def _read_certificates(_file: str | None, _folder: str | None) -> ssl.SSLContext:
    return httpx.create_ssl_context()


class Line(HTTPXRequest):
    """Connections to Telegram. `proxy` None: as HTTPS_PROXY, ALL_PROXY and NO_PROXY of the environment say.
    Raises ConfigError for a proxy that cannot be used."""

    __slots__ = ()

    def __init__(self, *, proxy: str | None, **settings: Any) -> None:
        try:
            super().__init__(proxy=proxy, httpx_kwargs={"verify": trusting()}, **settings)
        except RuntimeError as error:  # of a package that is not there
            raise ConfigError([_SOCKS]) from error
        except (ValueError, httpx.InvalidURL) as error:
            raise ConfigError(
                [
                    "The proxy to Telegram must be an address that begins with http://, https:// or socks5://, with "
                    "%2F for a slash in its password; correct adapters.telegram.proxy, HTTPS_PROXY or ALL_PROXY."
                ]
            ) from error

    async def do_request(self, *arguments: Any, **options: Any) -> tuple[int, bytes]:
        """As the library's. Raises NetworkError if somebody on the way answered in Telegram's place."""
        status, answer = await super().do_request(*arguments, **options)
        if status >= HTTPStatus.MULTIPLE_CHOICES and not answer.lstrip().startswith(b"{"):
            log.warning("not_telegrams_answer", status=status, size=len(answer))
            raise NetworkError(_named(status))
        return status, answer

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


class PollLine(Line):
    """The connections by which updates come. `worth_reading` chooses among updates as Telegram sent them, before the
    library makes its objects of them."""

    __slots__ = ("_worth_reading",)

    def __init__(self, *, worth_reading: Callable[[list[Any]], list[Any]], **settings: Any) -> None:
        super().__init__(**settings)
        self._worth_reading = worth_reading

    def parse_json_payload(self, payload: bytes) -> dict[str, Any]:  # type: ignore[override]  # asked of the object
        """As the line's. Raises TelegramError."""
        answer = super().parse_json_payload(payload)
        if isinstance(answer.get("result"), list):
            answer["result"] = self._worth_reading(answer["result"])
        return answer


def _named(status: int) -> str:
    try:
        return f"{HTTPStatus(status).phrase} ({status})"
    except ValueError:
        return f"unknown status {status}"
