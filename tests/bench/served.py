"""Redis servers for the benches, filled through the store's own steps."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gateway.app.config import Config
from gateway.runtime.clock import SystemClock
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from tests.bench.long import converse, messages
from tests.support.redis_server import RedisServer
from tests.support.redis_server import running as running_server


@contextmanager
def synced_server() -> Iterator[RedisServer]:
    """A server in a process of its own, which answers when what it was told is on the disk."""
    with tempfile.TemporaryDirectory() as folder, running_server(Path(folder), appendfsync="always") as server:
        yield server


def store_at(url: str, _: Config | None = None) -> Store:
    """A process's store."""
    return RedisStore(url, clock=SystemClock())


async def fill(server: RedisServer, chats: Sequence[str], length: int) -> None:
    """Sessions of `length` messages, made by the store's own steps; synced once, at the end."""
    with server.client() as client:
        client.config_set("appendfsync", "no")
        store = store_at(server.url)
        await store.open()
        await converse(store, chats, messages(length))
        await store.aclose()
        client.config_set("appendfsync", "always")


def cpu(server: RedisServer) -> float:
    """The seconds of CPU that a server has spent."""
    with server.client() as client:
        spent = client.info("cpu")
    return float(spent["used_cpu_user"]) + float(spent["used_cpu_sys"])
