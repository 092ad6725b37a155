"""Connections to the webhook that have not shown the secret. Anybody can open them, so each must cost next to nothing.

    newcomer                                                     what happens
    ---------------------------------------------------------    ------------------------------------------------------
    shows the secret in its first head                           the HTTP server takes it over, with what it sent
    shows another one, none, or too long a head                  401 or 431; what else it sends is thrown away
    is still there when its patience is over                     ended
    is the oldest of too many from one address, or of too many   ended

So a stranger's bytes reach no parser, start no task and set no timer of their own. The HTTP server looks at the secret
of each request again: behind a proxy, many share a connection.
"""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from typing import Final

from aiohttp import web

SECRET_HEADER: Final = "X-Telegram-Bot-Api-Secret-Token"
MOST_CONNECTED: Final = 256  # Telegram opens a hundred at most: https://core.telegram.org/bots/api#setwebhook
MOST_STRANGERS: Final = 128  # connections of one address without the secret; the address may be a proxy's
MOST_HEAD: Final = 32_768  # bytes; a proxy adds a few hundred to Telegram's
MOST_REST: Final = 65_536  # bytes that are read after a refusal; a stranger's flood is not
_NAME: Final = f"\r\n{SECRET_HEADER}:".lower().encode()
_END: Final = b"\r\n\r\n"
_REASONS: Final = {401: "Unauthorized", 431: "Request Header Fields Too Large"}
_ANSWERS: Final = {
    status: f"HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()
    for status, reason in _REASONS.items()
}

Count = Callable[[int, str | None], None]


class Newcomers:
    """All such connections of one endpoint. `patience`: seconds for the first head. `count` is told the status and the
    address of each that is refused."""

    def __init__(self, server: web.Server, secret: str, patience: float, count: Count) -> None:
        self.secret = secret.encode()
        self._server, self._patience, self._count = server, patience, count
        self._loop = asyncio.get_running_loop()
        self._all: dict[Newcomer, float] = {}  # and when its patience is over, the oldest first
        self._by_address: dict[str | None, dict[Newcomer, None]] = {}  # the oldest first
        self._timer: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """End all of them."""
        if self._timer is not None:
            self._timer.cancel()
        for each in list(self._all):
            self._end(each)

    def connected(self, newcomer: Newcomer) -> None:
        """One more. It may cost the oldest one its place."""
        alike = self._by_address.setdefault(newcomer.address, {})
        self._all[newcomer], alike[newcomer] = self._loop.time() + self._patience, None
        if len(alike) > MOST_STRANGERS:
            self._end(next(iter(alike)))
        elif len(self._all) + len(self._server.connections) > MOST_CONNECTED:
            self._end(next(iter(self._all)))
        if self._timer is None:
            self._timer = self._loop.call_later(self._patience, self._end_the_slow)

    def gone(self, newcomer: Newcomer) -> None:
        """Take a newcomer off the list: the connection ended, or is none any more."""
        if self._all.pop(newcomer, None) is not None:
            alike = self._by_address[newcomer.address]
            del alike[newcomer]
            if not alike:
                del self._by_address[newcomer.address]

    def admit(self, newcomer: Newcomer, said: bytes) -> None:
        """Let the HTTP server go on with it."""
        self.gone(newcomer)
        handler = self._server()
        newcomer.transport.set_protocol(handler)
        handler.connection_made(newcomer.transport)
        handler.data_received(said)

    def refuse(self, newcomer: Newcomer, status: int) -> None:
        """Answer it. It stays for a while: its answer is lost if the connection ends before all it sent is read."""
        self._count(status, newcomer.address)
        newcomer.transport.write(_ANSWERS[status])
        newcomer.transport.write_eof()

    def _end(self, newcomer: Newcomer) -> None:
        self.gone(newcomer)
        newcomer.transport.abort()

    def _end_the_slow(self) -> None:
        """End those whose patience is over, and come again for the next."""
        self._timer, now = None, self._loop.time()
        while (oldest := next(iter(self._all), None)) is not None:
            if self._all[oldest] > now:
                self._timer = self._loop.call_at(self._all[oldest], self._end_the_slow)
                return
            self._end(oldest)


class Newcomer(asyncio.Protocol):
    """One of them. It reads up to the end of the first head."""

    transport: asyncio.Transport
    address: str | None

    def __init__(self, others: Newcomers) -> None:
        self._others = others
        self._said = bytearray()
        self._rest: int | None = None  # bytes that it may still send; None: it is not refused

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A connection opened."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        peer = transport.get_extra_info("peername")
        self.address = peer[0] if peer else None
        self._others.connected(self)

    def data_received(self, data: bytes) -> None:
        """Look for the secret once the head is whole."""
        if self._rest is not None:
            self._rest -= len(data)
            if self._rest < 0:
                self.transport.abort()
            return
        known = len(self._said)
        self._said += data
        end = self._said.find(_END, max(0, known - len(_END)))
        if end < 0 and len(self._said) <= MOST_HEAD:
            return
        if end >= 0 and hmac.compare_digest(_shown(bytes(self._said[: end + 2])), self._others.secret):
            self._others.admit(self, bytes(self._said))
        else:
            self._said.clear()
            self._rest = MOST_REST
            self._others.refuse(self, 431 if end < 0 else 401)

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection ended."""
        self._others.gone(self)


def _shown(head: bytes) -> bytes:
    """The secret that a head shows, or nothing."""
    begin = head.lower().find(_NAME) + len(_NAME)
    return head[begin : head.find(b"\r\n", begin)].strip(b" \t") if begin >= len(_NAME) else b""
