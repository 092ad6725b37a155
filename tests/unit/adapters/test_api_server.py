"""Which requests the API refuses before its HTTP server sees them."""

from __future__ import annotations

from typing import Any, cast

import pytest
from aiohttp import web

from adapters.api.server import Server
from gateway.runtime.clock import SystemClock


class Known:
    """One key."""

    def is_strange(self, secret: str) -> bool:
        """Everybody else's."""
        return secret != "sk-anna"


GET = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n"
POST = b"POST /nowhere HTTP/1.1\r\nHost: x\r\n"
WRONG = b"Authorization: Bearer sk-wrong\r\n"


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (GET + WRONG + b"\r\n", b"401"),
        (GET + WRONG + b"Content-Length: 2\r\n\r\n{}", b"401"),
        (GET + b"X: a" + b" " * 250_000 + b"a\r\n" + WRONG + b"\r\n", b"401"),  # one look at each byte
        (POST + b"\r\n", b"404"),
        (POST + b"X-OpenWebUI-User-Id: anna\r\ncontent-length: 2\r\n\r\n{}", b"404"),
        # What the HTTP server is to look at: it may be a good one, or is not as plain as it should be.
        (GET + b"Authorization: Bearer sk-anna\r\n\r\n", b""),
        (GET + b"\r\n", b""),
        (b"POST /hook/deploys HTTP/1.1\r\n" + WRONG + b"\r\n", b""),
        (POST + b"Content-Length: 3\r\n\r\n{}", b""),
        (POST + b"Content-Length: 1\r\n\r\n{}", b""),
        (POST + b"Content-Length: +2\r\n\r\n{}", b""),
        (POST + b"Content-Length: 2\r\ncontent-length: 2\r\n\r\n{}", b""),
        (POST + b"Content-Length : 2\r\n\r\n{}", b""),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n", b""),
        (POST + b"X: y\n z\r\n\r\n", b""),
        (POST + b"Connection: close\r\n\r\n", b""),
        (POST + b"\r\n" + POST + b"\r\n", b""),
        (b"POST /v1/chat%2Fcompletions HTTP/1.1\r\n" + WRONG + b"\r\n", b""),
        (b"GET /nowhere HTTP/1.0\r\nHost: x\r\n\r\n", b""),
    ],
)
def test_only_a_whole_and_plain_request_is_refused_at_the_door(said: bytes, status: bytes) -> None:
    none = cast(Any, None)
    server = Server(host="", port=0, clock=SystemClock(), keys=cast(Any, Known()))
    server.add([web.get("/v1/models", none), web.post("/v1/chat/completions", none), web.post("/hook/{name}", none)])
    assert (server.refused(said) or b"HTTP/1.1 ").split(b" ")[1] == status
