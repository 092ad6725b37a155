"""Strangers who lean on a webhook, until stdin ends: a process of its own, so that nobody else's loop waits for them.

256 connections without the secret to the port that is given. Half of them begin a request and only stay; the others
send a large compressed body. Who is ended comes again half a second later. The last line tells how many connections
there were. Sockets are bare: the machine has other work.
"""

from __future__ import annotations

import errno
import gzip
import selectors
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from typing import Final

CONNECTIONS: Final = 256
_PAUSE: Final = 0.5  # seconds
_BODY: Final = gzip.compress(b" " * 4_000_000)
_HEAD: Final = (
    f"POST /hook HTTP/1.1\r\nHost: bot\r\nContent-Encoding: gzip\r\nContent-Length: {len(_BODY)}\r\n".encode()
)


class _Strangers:
    def __init__(self, port: int) -> None:
        self.opened = 0
        self._port = port
        self._open = selectors.DefaultSelector()
        self._open.register(sys.stdin, selectors.EVENT_READ)
        self._away = deque((0.0, number) for number in range(CONNECTIONS))  # when each comes again

    def lean(self) -> None:
        """Come again and again."""
        while True:
            while self._away and self._away[0][0] <= time.perf_counter():
                self._come(self._away.popleft()[1])
            wait = max(0.0, self._away[0][0] - time.perf_counter()) if self._away else None
            for key, events in self._open.select(wait):
                if key.fileobj is sys.stdin:
                    return
                assert isinstance(key.fileobj, socket.socket)
                self._go_on(key.fileobj, key.data, events)

    def _come(self, number: int) -> None:
        connection = socket.socket()
        connection.setblocking(False)
        if connection.connect_ex(("127.0.0.1", self._port)) in (0, errno.EINPROGRESS):
            self._open.register(connection, selectors.EVENT_WRITE, number)
        else:
            self._leave(connection, number)

    def _go_on(self, connection: socket.socket, number: int, events: int) -> None:
        try:
            if events & selectors.EVENT_WRITE:
                connection.sendall(_HEAD + (b"\r\n" + _BODY if number % 2 else b""))
                self.opened += 1
                self._open.modify(connection, selectors.EVENT_READ, number)
            elif not connection.recv(65_536):
                self._leave(connection, number)
        except OSError:
            self._leave(connection, number)

    def _leave(self, connection: socket.socket, number: int) -> None:
        with suppress(KeyError):
            self._open.unregister(connection)
        connection.close()
        self._away.append((time.perf_counter() + _PAUSE, number))


def _lean(port: int) -> None:
    strangers = _Strangers(port)
    strangers.lean()
    print(strangers.opened)


if __name__ == "__main__":
    _lean(int(sys.argv[1]))
