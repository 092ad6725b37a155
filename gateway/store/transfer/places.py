"""The stores that an address can name, as places to move from and to."""

from __future__ import annotations

from pathlib import Path

from gateway.runtime.clock import Clock
from gateway.store.moving import Source, Target
from gateway.store.redis.moving import RedisSource, RedisTarget
from gateway.store.sqlite.moving import SqliteSource, SqliteTarget

_SQLITE = "sqlite:///"


def source_at(url: str, clock: Clock) -> Source:
    """The store at an address of the form that `store.url` has."""
    if url.startswith(_SQLITE):
        return SqliteSource(Path(url.removeprefix(_SQLITE)))
    return RedisSource(url, clock=clock)


def target_at(url: str, clock: Clock) -> Target:
    """The same, to be filled."""
    if url.startswith(_SQLITE):
        return SqliteTarget(Path(url.removeprefix(_SQLITE)))
    return RedisTarget(url, clock=clock)
