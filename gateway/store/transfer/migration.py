"""Moves everything from one store into another, and proves that it is all there.

The target is marked before the first record is written, and the mark goes only when what the target
gives back has been found equal. Whatever happens between leaves the source as it was and a target that
no gateway opens and that the next migration fills again from its start.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Final, Literal, Protocol

from msgspec import Struct

from gateway.runtime.clock import Clock
from gateway.runtime.errors import StoreError
from gateway.store.steps.copying import Copied, Tally
from gateway.store.transfer.redis_database import RedisSnapshot, RedisSource, RedisTarget
from gateway.store.transfer.sqlite_file import SqliteSource, SqliteTarget

_SQLITE: Final = "sqlite:///"
_POSTGRES: Final = ("postgresql://", "postgres://")

Stage = Literal["copying", "verifying"]


class MigrationSource(Protocol):
    """A store whose records are read. `name` is its address without credentials."""

    name: str

    @property
    def identity(self) -> str:
        """The same for two addresses of one store; known once it is open."""

    async def open(self) -> None:
        """Take it, so that no gateway opens it meanwhile. Raises StoreLocked if one uses it, or StoreUnavailable."""

    def dump(self) -> AsyncGenerator[Sequence[Copied], None]:
        """All records in pages."""

    async def last_number(self) -> int:
        """A number that is not below any that the store gave."""

    async def check(self) -> None:
        """Raises StoreUnavailable if it is no longer certain that no gateway uses it."""

    async def aclose(self) -> None:
        """Let go of it. Idempotent."""


class Target(MigrationSource, Protocol):
    """A store that is filled. `open` refuses any that is neither empty nor half-filled by a migration."""

    async def begin(self, origin: str) -> None:
        """Mark it as half-filled from `origin`, so that no gateway opens it, and empty it of what an earlier migration
        left."""

    async def restore(self, page: Sequence[Copied]) -> None:
        """Store records, in the order in which a source gives them."""

    async def complete(self, last_number: int) -> None:
        """Every record is there; numbers count on from there."""

    async def publish(self) -> None:
        """Take the mark away: from now on it is a store like any other."""


class MigrationProgress(Struct, frozen=True, kw_only=True):
    """The records that are done in this stage; `total` None: nobody knows yet how many there are."""

    stage: Stage
    done: int
    total: int | None


class Report(Struct, frozen=True, kw_only=True):
    """A migration that went well: how many records of each kind were copied and found equal, and how
    many seconds copying and verifying took."""

    source: str
    target: str
    copied: dict[str, int]
    verified: dict[str, int]
    copying_seconds: float
    verifying_seconds: float


Tell = Callable[[MigrationProgress], None]


def tell_nobody(_: MigrationProgress) -> None:
    """Nobody watches."""


def source_at(url: str, clock: Clock) -> MigrationSource:
    """The store at an address of the form that `store.url` has. Raises StoreError for PostgreSQL."""
    _check_is_moved(url)
    if url.startswith(_SQLITE):
        return SqliteSource(Path(url.removeprefix(_SQLITE)))
    return RedisSource(url, clock=clock)


def target_at(url: str, clock: Clock) -> Target:
    """The same, to be filled."""
    _check_is_moved(url)
    if url.startswith(_SQLITE):
        return SqliteTarget(Path(url.removeprefix(_SQLITE)))
    return RedisTarget(url, clock=clock)


def _check_is_moved(url: str) -> None:
    if url.startswith(_POSTGRES):
        raise StoreError(
            "Legato cannot copy a PostgreSQL store. Back it up with pg_dump, and bring it back with pg_restore or psql."
        )


async def migrate(source: MigrationSource, target: Target, *, clock: Clock, tell: Tell = tell_nobody) -> Report:
    """Copy, verify, publish. `tell` is called after every page. Raises StoreLocked or StoreUnavailable
    if either store cannot be used, and StoreError if they differ in the end."""
    try:
        await source.open()
        await _open_target(source, target)
        started = clock.monotonic()
        await target.begin(source.name)
        copied = await _copy(source, target, tell)
        await target.complete(await source.last_number())
        between = clock.monotonic()
        verified = await _read_back(target, copied.counts.total(), tell)
        kind = copied.differing(verified)
        if kind is not None:
            raise StoreError(
                f"The copy in {target.name} differs from {source.name}: Legato wrote {copied.counts[kind]:,} records "
                f"of the kind {kind!r}, and read back {verified.counts[kind]:,} that are not the same. No gateway will "
                "open the copy, and the source is unchanged. Run `legato migrate` again, and report this if it happens "
                "again."
            )
        await source.check()
        await target.check()
        await target.publish()
        ended = clock.monotonic()
    finally:
        await target.aclose()
        await source.aclose()
    return Report(
        source=source.name,
        target=target.name,
        copied=dict(copied.counts),
        verified=dict(verified.counts),
        copying_seconds=between - started,
        verifying_seconds=ended - between,
    )


async def export(url: str, path: Path, clock: Clock) -> None:
    """Copy a Redis store as it is now, also beside running gateways, into a new file that a SQLite store opens. Raises
    StoreError."""
    _check_is_moved(url)
    await migrate(RedisSnapshot(url, clock=clock), SqliteTarget(path), clock=clock)


async def _open_target(source: MigrationSource, target: Target) -> None:
    same = StoreError(f"{source.name} and {target.name} are the same store. Choose an empty one to migrate to.")
    try:
        await target.open()
    except StoreError as error:
        if target.identity == source.identity:
            raise same from error
        raise
    if target.identity == source.identity:
        raise same


async def _copy(source: MigrationSource, target: Target, tell: Tell) -> Tally:
    tally = Tally()
    async with aclosing(source.dump()) as pages:
        async for page in pages:
            await source.check()
            await target.check()
            await target.restore(page)
            tally.add(page)
            tell(MigrationProgress(stage="copying", done=tally.counts.total(), total=None))
    return tally


async def _read_back(target: Target, total: int, tell: Tell) -> Tally:
    tally = Tally()
    async with aclosing(target.dump()) as pages:
        async for page in pages:
            tally.add(page)
            tell(MigrationProgress(stage="verifying", done=tally.counts.total(), total=total))
    return tally
