"""The store implementations that the contract suite runs against.

A new store is one more entry in STORES: a function that makes its `Bench` in a fresh folder. Test
modules load this as a plugin, `pytest_plugins = ["tests.contract.stores"]`, and import nothing of it.
"""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import pytest

from gateway.store.base import Store
from gateway.store.sqlite import SqliteStore
from tests.contract.store_kit import START, Bench
from tests.fakes import ManualClock


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


STORES: Final[dict[str, Callable[[Path], Bench]]] = {"sqlite": SqliteBench}


@pytest.fixture(params=sorted(STORES))
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    """Each store in turn."""
    made = STORES[request.param](tmp_path)
    yield made
    await made.aclose()


@pytest.fixture
async def store(bench: Bench) -> Store:
    """An open, empty store."""
    return await bench.open()
