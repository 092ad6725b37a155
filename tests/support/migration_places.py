"""Files and databases to migrate between, for tests that load this as a plugin."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from tests.support import migration_kit
from tests.support.fakes import ManualClock
from tests.support.model import PATIENCE
from tests.support.store_kit import START

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server"]

LEASE = "*lease:legato migrate"


class Places:
    """A folder, a server's databases and a cluster: stores by their addresses."""

    def __init__(self, folder: Path, server: RedisServer) -> None:
        self.folder = folder
        self.redis = [server.url, server.url.removesuffix("0") + "1"]
        self._server = server
        self._opened: list[Store] = []

    def sqlite(self, name: str) -> str:
        """The address of a file."""
        return f"sqlite:///{self.folder / name}"

    async def open(self, url: str) -> Store:
        """A gateway's store, whose lease outlives the test."""
        clock, at_once = ManualClock(START), migration_kit.AT_ONCE
        if url.startswith("sqlite"):
            store: Store = SqliteStore(Path(url.removeprefix("sqlite:///")), clock=clock, attempt_pauses=at_once)
        else:
            store = RedisStore(url, clock=clock, lease_seconds=600.0, attempt_pauses=at_once, timeout=PATIENCE)
        await store.open()
        self._opened.append(store)
        return store

    async def filled(self, url: str) -> str:
        """The same address, once everything is in the store there and its process is gone."""
        store = await self.open(url)
        await migration_kit.fill(store)
        await self.leave(store)
        return url

    async def leave(self, store: Store) -> None:
        """Leave the store as if its process were gone, with its work as it was."""
        if isinstance(store, RedisStore):
            backend = store.backend
            backend._index.finish()
            await backend._wire.settled()
            await backend._background.aclose()
            await backend._wire.aclose()
            self._server.let_die(store.owner)
        else:
            await store.aclose()

    def forget_migrations(self) -> None:
        """The lease of one that was killed is over."""
        for database in range(2):
            with self._server.client(db=database) as client:
                for name in client.keys(LEASE):
                    client.delete(name)

    async def aclose(self) -> None:
        """Close whatever is open."""
        for store in self._opened:
            await store.aclose()


@pytest.fixture
async def places(tmp_path: Path, redis_server: RedisServer) -> AsyncIterator[Places]:
    """Nothing is anywhere."""
    redis_server.empty()
    made = Places(tmp_path, redis_server)
    yield made
    await made.aclose()
