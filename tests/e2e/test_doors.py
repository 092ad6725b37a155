"""Strangers at the doors of the real program: the page and the monitor answer others all the same."""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.model import PATIENCE
from tests.support.program import legato_run
from tests.support.redis_server import free_port
from tests.support.waiting import eventually

FILES = 256  # that the program may have open, as on a Mac
STRANGERS = 700


@contextmanager
def half_open(port: int, said: bytes) -> Iterator[list[socket.socket]]:
    """Connections that have said this, and say no more."""
    with ExitStack() as stack:
        opened = []
        for _ in range(STRANGERS):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), PATIENCE))
            with suppress(ConnectionError):  # it had to make room at once
                connection.sendall(said)
            opened.append(connection)
        yield opened


@pytest.mark.parametrize(
    "said",
    [b"GET / HTTP/1.1\r\nX:", b"POST /login HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: 100\r\n\r\nname="],
    ids=["head", "body"],
)
async def test_a_crowd_that_only_stays_keeps_nobody_out(tmp_path: Path, said: bytes) -> None:
    page, monitor = free_port(), free_port()
    (tmp_path / "config.yaml").write_text(
        f"adapters: {{web: {{enabled: true, port: {page}}}}}\nmonitor: {{address: '127.0.0.1:{monitor}'}}\n"
    )
    async with legato_run(tmp_path) as process:
        await eventually((tmp_path / "legato-home" / "page-link").exists)
        hard = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (FILES, hard))
        for port in (page, monitor):
            await asyncio.to_thread(_lean, port, said.replace(b"{port}", str(page).encode()), page, monitor)
        process.send_signal(signal.SIGTERM)
        out, err = await process.communicate()
        assert process.returncode == 0
    log = out.decode() + err.decode()
    assert "Traceback" not in log
    assert "accept" not in log
    assert 0 < len([line for line in log.splitlines() if "request_refused" in line]) < 40


def _lean(port: int, said: bytes, page: int, monitor: int) -> None:
    with half_open(port, said):
        for _ in range(3):
            for asked, path in ((page, "/"), (monitor, "/healthz")):
                assert _status(asked, path) == b"200"


def _status(port: int, path: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        return connection.recv(100).split(b" ")[1]
