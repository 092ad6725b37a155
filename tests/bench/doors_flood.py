"""Bad requests to the API until stdin ends: a process of its own, so that nobody else's loop waits for them.

A thousand a second, in turns: a wrong key, an unknown path, a wrong key without a body, and JSON that is cut off. The
first line that is read names the port and a key. A connection stays as long as the server lets it. The last line tells
in JSON how many requests there were.

    python -m tests.bench.doors_flood            flood
    python -m tests.bench.doors_flood nothing    a bare aiohttp server that refuses all: what a flood costs by itself
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
import time
from typing import Final

from aiohttp import web

RATE: Final = 1_000  # a second
_THREADS: Final = 8


def _requests(key: str) -> list[bytes]:
    good = json.dumps({"model": "legato", "messages": [{"role": "user", "content": "hello " * 150}]}).encode()
    return [
        _request("POST /v1/chat/completions", "wrong", good),
        _request("GET /nowhere", "wrong", b""),
        _request("GET /v1/models", "wrong", b""),
        _request("POST /v1/chat/completions", key, good[:-5]),
    ]


def _request(what: str, key: str, body: bytes) -> bytes:
    size = f"Content-Length: {len(body)}\r\n" if body else ""
    return f"{what} HTTP/1.1\r\nHost: bot\r\nAuthorization: Bearer {key}\r\n{size}\r\n".encode() + body


class _Stranger(threading.Thread):
    def __init__(self, port: int, requests: list[bytes]) -> None:
        super().__init__()
        self._port, self._requests = port, requests
        self.sent, self.over = 0, threading.Event()

    def run(self) -> None:
        """Send one request after the other, and never catch up."""
        connection: socket.socket | None = None
        due = time.monotonic()
        while not self.over.wait(due - time.monotonic()):
            due = max(due + _THREADS / RATE, time.monotonic())
            connection = connection or socket.create_connection(("127.0.0.1", self._port), timeout=10)
            try:
                connection.sendall(self._requests[self.sent % len(self._requests)])
                told = connection.recv(8_192)
            except OSError:
                told = b""
            if not told or b"\r\nConnection: close" in told:
                connection.close()
                connection = None
            self.sent += 1


def _flood() -> None:
    port, key = sys.stdin.readline().split()
    strangers = [_Stranger(int(port), _requests(key)) for _ in range(_THREADS)]
    for each in strangers:
        each.start()
    sys.stdin.read()
    for each in strangers:
        each.over.set()
        each.join()
    print(json.dumps({"sent": sum(each.sent for each in strangers)}))


async def _nothing() -> None:
    async def refuse(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=401, body=b"{}")

    server = await asyncio.get_running_loop().create_server(web.Server(refuse, access_log=None), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    if sys.argv[1:] == ["nothing"]:
        asyncio.run(_nothing())
    else:
        _flood()
