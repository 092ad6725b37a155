"""Fixtures for tests of the Redis store alone: servers to ill-treat, and stores on them.

Test modules load this as a plugin, `pytest_plugins = ["tests.support.redis_stores"]`, and import nothing of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gateway.runtime.clock import SystemClock
from gateway.store.redis import RedisStore

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]

Opener = Callable[..., Any]


@pytest.fixture
def server(redis_server: RedisServer) -> RedisServer:
    """An empty server."""
    redis_server.empty()
    return redis_server


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[Callable[..., RedisServer]]:
    """Makes servers, not yet started, that a test may ill-treat."""
    from tests.support.redis_server import RedisServer

    servers: list[RedisServer] = []

    def make(**options: Any) -> RedisServer:
        servers.append(RedisServer(tmp_path / str(len(servers)), **options))
        return servers[-1]

    yield make
    for made in servers:
        made.kill()


@pytest.fixture
def kind() -> type[Any]:
    """The store that `make` makes."""
    return RedisStore


@pytest.fixture
async def make(kind: type[Any]) -> AsyncIterator[Opener]:
    """Makes stores, not yet open, and closes them in the end."""
    stores: list[Any] = []

    def build(url: str, **options: Any) -> Any:
        stores.append(kind(url, clock=SystemClock(), **options))
        return stores[-1]

    yield build
    await asyncio.gather(*(store.aclose() for store in stores))
