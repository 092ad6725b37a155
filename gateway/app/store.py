"""The store that the configuration names, and the gateway's own folder beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gateway.app.config import Config
from gateway.runtime.clock import Clock, SystemClock
from gateway.store.port import Store
from gateway.store.sqlite.store import SqliteStore


def configured_store(
    config: Config,
    *,
    clock: Clock | None = None,
    read_only: bool = False,
    waits: bool = True,
    told: Callable[[str], None] = lambda _: None,
) -> Store:
    """The store of the configuration. `read_only` opens a SQLite file beside a running gateway (any
    number of processes share a Redis store). A server that is away is waited for where `waits`, and never by
    `read_only`; `told` is given a sentence about that."""
    path = config.store.sqlite_path
    clock = clock or SystemClock()
    if path is None:
        from gateway.store.redis import RedisStore

        return RedisStore(config.store.url, clock=clock, waits=waits and not read_only, told=told)
    return SqliteStore(path, clock=clock, concurrency=config.turns.concurrent, read_only=read_only)


def home(config: Config) -> Path:
    """The gateway's own folder, beside its database: engines' files, console history, its log."""
    path = config.store.sqlite_path or Path("legato.db")
    return path.with_name(f"{path.stem}-home")
