"""Sockets of which little is read at once.

asyncio reads a quarter of a megabyte at once and has all of it parsed before anybody else gets a turn. Of a server that
means harm every 25 bytes may be an object: a `100 Continue` without an end, chunks of one byte, events of one letter.
"""

from __future__ import annotations

import socket
from errno import EMSGSIZE
from math import inf
from typing import Any, Final

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
