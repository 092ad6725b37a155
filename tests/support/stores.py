"""The store implementations that the contract suite runs against.

A new store is one more entry in STORES: a function that makes its `Bench` for one test. Test modules
load this as a plugin, `pytest_plugins = ["tests.support.stores"]`, and import nothing of it.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite import SqliteStore
from tests.support.empty_store import put_empty_store
from tests.support.fakes import ManualClock
from tests.support.memory_backend import MemoryBackend, SearchedRecords
from tests.support.model import PATIENCE
from tests.support.store_kit import START, Bench

if TYPE_CHECKING:  # at run time it is a plugin, which nobody may import first, or not everybody has what it needs
    from gateway.store.postgres.backend import PostgresStore
    from tests.support.postgres_server import PostgresServer
    from tests.support.redis_server import RedisServer

pytest_plugins = ["tests.support.redis_server", "tests.support.postgres_server"]


class SqliteBench:
    """Files in a folder. A crash is a copy of what is on the disk at that moment."""

    def __init__(self, folder: Path) -> None:
        self.clock = ManualClock(START)
        self._folder = folder
        self._number = 0
        self._opened: list[Store] = []

    @property
    def path(self) -> Path:
        """The database now in use."""
        return self._folder / f"legato{self._number}.db"

    async def open(self, *, concurrency: int = 256) -> SqliteStore:
        put_empty_store(self.path)
        store = SqliteStore(self.path, clock=self.clock, concurrency=concurrency)
        await store.open()
        self._opened.append(store)
        return store

    async def crash(self, store: Store) -> SqliteStore:
        before = self.path
        self._number += 1
        for suffix in ("", "-wal"):
            if (old := before.with_name(before.name + suffix)).exists():
                shutil.copyfile(old, self.path.with_name(self.path.name + suffix))
        await store.aclose()
        return await self.open()

    async def aclose(self) -> None:
        for store in self._opened:
            await store.aclose()


class RedisBench:
    """An emptied server, or cluster. A crash cuts a store's connections and lets its lease run out."""

    def __init__(self, servers: list[RedisServer]) -> None:
        self.clock = ManualClock(START)
        self.servers = servers
        self._opened: list[Store] = []
        for server in servers:
            server.empty()

    async def open(self, *, concurrency: int = 256) -> RedisStore:
        # Real time runs the leases, and the test's clock the beats, which never come; nor does another attempt at a
        # server that did not answer in time.
        store = RedisStore(self.servers[0].url, clock=self.clock, lease_seconds=600.0, timeout=PATIENCE)
        self._opened.append(store)
        async with asyncio.timeout(PATIENCE):  # a server that is not ready is waited for by a clock nobody moves
            await store.open()
        return store

    async def crash(self, store: Store) -> RedisStore:
        assert isinstance(store, RedisStore)
        await cut_off(store)
        let_die(self.servers, store.owner)
        return await self.open()

    async def aclose(self) -> None:
        for store in self._opened:
            await store.aclose()


async def cut_off(store: RedisStore) -> None:
    """As if its process had been killed: nothing more is sent, nothing is given back."""
    await store.backend._background.aclose()
    await store.backend._wire.aclose()


def let_die(servers: list[RedisServer], owner: str) -> None:
    """The time of a process's lease is over."""
    for server in servers:
        server.let_die(owner)


class PostgresBench:
    """An emptied server. A crash cuts a store's connections and lets its time run out."""

    def __init__(self, server: PostgresServer) -> None:
        self.clock = ManualClock(START)
        self.server = server
        self._opened: list[PostgresStore] = []
        server.empty()

    async def open(self, *, concurrency: int = 256) -> PostgresStore:
        from gateway.store.postgres.backend import PostgresStore

        store = PostgresStore(self.server.url, clock=self.clock, concurrency=concurrency, lease_seconds=600.0)
        self._opened.append(store)
        async with asyncio.timeout(PATIENCE):
            await store.open()
        return store

    async def crash(self, store: Store) -> PostgresStore:
        (opened,) = [each for each in self._opened if each is store]
        await opened.backend.aclose()
        self.server.let_die(opened.backend.owner)
        return await self.open()

    async def aclose(self) -> None:
        for store in self._opened:
            await store.aclose()


class MemoryBench:
    """A space in memory. A crash is another store on the same space."""

    def __init__(self) -> None:
        self.clock = ManualClock(START)
        self.space = SearchedRecords()

    async def open(self, *, concurrency: int = 256) -> Store:
        store = Store(MemoryBackend(self.space), clock=self.clock, concurrency=concurrency)
        await store.open()
        return store

    async def crash(self, store: Store) -> Store:
        assert isinstance(store, Store)
        await store._backend.aclose()
        return await self.open()

    async def aclose(self) -> None:
        """Nothing is left behind."""


def _memory(request: pytest.FixtureRequest, folder: Path) -> Bench:
    return MemoryBench()


def _sqlite(request: pytest.FixtureRequest, folder: Path) -> Bench:
    return SqliteBench(folder)


def _redis(request: pytest.FixtureRequest, folder: Path) -> Bench:
    return RedisBench([request.getfixturevalue("redis_server")])


def _redis_cluster(request: pytest.FixtureRequest, folder: Path) -> Bench:
    return RedisBench(request.getfixturevalue("redis_cluster"))


def _postgres(request: pytest.FixtureRequest, folder: Path) -> Bench:
    return PostgresBench(request.getfixturevalue("postgres_server"))


STORES: Final[dict[str, Callable[[pytest.FixtureRequest, Path], Bench]]] = {
    "memory": _memory,
    "postgres": _postgres,
    "sqlite": _sqlite,
    "redis": _redis,
    "redis-cluster": _redis_cluster,
}


# A cluster refuses whatever one server refuses, and more. One server has tests of its own, and all of these if asked.
_ALL: Final = {
    name: pytest.param(name, marks=[pytest.mark.slow] * (name in ("redis", "postgres"))) for name in sorted(STORES)
}
WITH_AN_INDEX: Final = [param for name, param in _ALL.items() if name != "memory"]


@pytest.fixture(params=list(_ALL.values()))
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    """Each store in turn."""
    made = STORES[request.param](request, tmp_path)
    yield made
    await made.aclose()


@pytest.fixture
async def store(bench: Bench) -> Store:
    """An open, empty store."""
    return await bench.open()
