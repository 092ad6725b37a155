"""Strangers who lean on a webhook, until stdin ends: a process of its own, so that nobody else's loop waits for them.

256 connections without the secret to the port that is given. Half of them begin a request and only stay; the others
send a large compressed body. Who is ended comes again half a second later. Without a port they lean on one of their
own, which does what the webhook does with them: so it shows what they cost the machine, where they cost the gateway
nothing. The last line tells in JSON how many connections there were, and the CPU seconds of this process. Sockets are
bare: the machine has other work.
"""

from __future__ import annotations

import errno
import gzip
import json
import selectors
import socket
import sys
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from gateway.runtime.door import MOST_ALIKE, MOST_WAITING

CONNECTIONS: Final = 256
_PAUSE: Final = 0.5  # seconds
_BODY: Final = gzip.compress(b" " * 4_000_000)
_HEAD: Final = (
    f"POST /hook HTTP/1.1\r\nHost: bot\r\nContent-Encoding: gzip\r\nContent-Length: {len(_BODY)}\r\n".encode()
)
_REFUSAL: Final = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

Ready = Callable[[int], None]  # what to do when a socket is ready for these events


class _Strangers:
    """They come to a port. `selector` calls what is registered with each socket."""

    def __init__(self, selector: selectors.BaseSelector, port: int) -> None:
        self.opened = 0
        self._selector, self._port = selector, port
        self._away = deque((0.0, number) for number in range(CONNECTIONS))  # when each comes again

    def come(self) -> float | None:
        """All of them whose pause is over. Gives the seconds until the next one; None: nobody is away."""
        while self._away and self._away[0][0] <= time.perf_counter():
            self._come(self._away.popleft()[1])
        return max(0.0, self._away[0][0] - time.perf_counter()) if self._away else None

    def _come(self, number: int) -> None:
        connection = socket.socket()
        connection.setblocking(False)
        ready: Ready = lambda events: self._go_on(connection, number, events)  # noqa: E731
        if connection.connect_ex(("127.0.0.1", self._port)) in (0, errno.EINPROGRESS):
            self._selector.register(connection, selectors.EVENT_WRITE, ready)
        else:
            self._leave(connection, number)

    def _go_on(self, connection: socket.socket, number: int, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                connection.sendall(_HEAD + (b"\r\n" + _BODY if number % 2 else b""))
                self.opened += 1
                data = self._selector.get_key(connection).data
                self._selector.modify(connection, selectors.EVENT_READ, data)
            elif not connection.recv(65_536):
                self._leave(connection, number)
        except OSError:
            self._leave(connection, number)

    def _leave(self, connection: socket.socket, number: int) -> None:
        _closed(self._selector, connection)
        self._away.append((time.perf_counter() + _PAUSE, number))


class _Port:
    """A port that treats strangers as the webhook does."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=MOST_WAITING)
        self._listener.setblocking(False)
        self._open: dict[socket.socket, bytes] = {}  # what each has said, the oldest first
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    @property
    def number(self) -> int:
        """Return the port's number."""
        number: int = self._listener.getsockname()[1]
        return number

    def _accept(self, _: int) -> None:
        connection, _address = self._listener.accept()
        connection.setblocking(False)
        self._open[connection] = b""
        if len(self._open) > MOST_ALIKE:
            self._end(next(iter(self._open)))
        self._selector.register(connection, selectors.EVENT_READ, lambda _: self._read(connection))

    def _read(self, connection: socket.socket) -> None:
        try:
            data = connection.recv(65_536)
            if not data:
                self._end(connection)
            elif b"\r\n\r\n" not in self._open[connection]:
                self._open[connection] += data
                if b"\r\n\r\n" in self._open[connection]:
                    connection.sendall(_REFUSAL)
                    connection.shutdown(socket.SHUT_WR)
        except OSError:
            self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        del self._open[connection]
        _closed(self._selector, connection)


def _closed(selector: selectors.BaseSelector, connection: socket.socket) -> None:
    with suppress(KeyError):
        selector.unregister(connection)
    connection.close()


def _lean(port: int | None) -> int:
    """Lean on a port until stdin ends, and return the number of connections."""
    selector = selectors.DefaultSelector()
    selector.register(sys.stdin, selectors.EVENT_READ)
    strangers = _Strangers(selector, _Port(selector).number if port is None else port)
    while True:
        for key, events in selector.select(strangers.come()):
            if key.data is None:
                return strangers.opened
            if key.fileobj in selector.get_map():  # an event before this one may have ended it
                ready: Ready = key.data
                ready(events)


if __name__ == "__main__":
    opened = _lean(int(sys.argv[1]) if len(sys.argv) > 1 else None)
    print(json.dumps({"opened": opened, "cpu": time.process_time()}))
