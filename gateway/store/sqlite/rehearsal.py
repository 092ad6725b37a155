"""An upgrade tried on a copy: what a start of this version would do to the store, without doing it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
from msgspec import Struct

from gateway.runtime.clock import Clock
from gateway.store.sqlite import search
from gateway.store.sqlite.connection import check_undamaged, connect_writer, unavailable
from gateway.store.sqlite.copying import check_there, fill, written
from gateway.store.sqlite.database import REHEARSED
from gateway.store.sqlite.migrations import VERSION, counts, migrate


class Rehearsal(Struct, frozen=True, kw_only=True):
    """`version` is the store's, `known` this program's. The upgrade took so many `seconds`; the store has `bytes`, its
    upgrade takes `needed_bytes` more for a while (with the copy that is kept), and the disk has `free_bytes`. `rows` by
    table before it; `unindexed`: messages whose search entries are made anew after the start."""

    version: int
    known: int
    seconds: float
    bytes: int
    needed_bytes: int
    free_bytes: int
    rows: Mapping[str, int]
    unindexed: int


def rehearse(path: Path, clock: Clock, *, keeps_copy: bool) -> Rehearsal:
    """Bring a copy of the store to this version, and measure that. Raises StoreUnavailable where a start would fail."""
    check_there(path)
    with written(path), TemporaryDirectory(prefix=f"{path.name}{REHEARSED}", dir=path.parent) as folder:
        copy = Path(folder, path.name)
        fill(path, copy, path)
        try:
            return _rehearsed(copy, path, clock, keeps_copy=keeps_copy)
        except apsw.Error as error:
            raise unavailable(error, path) from error


def _rehearsed(copy: Path, path: Path, clock: Clock, *, keeps_copy: bool) -> Rehearsal:
    size = copy.stat().st_size
    with closing(connect_writer(copy)) as connection:
        version = int(connection.pragma("user_version"))
        rows = counts(connection)
        began = clock.monotonic()
        migrate(connection, path)
        seconds = clock.monotonic() - began
        log = copy.with_name(f"{copy.name}-wal").stat().st_size
        check_undamaged(connection, path)
        unindexed = search.left(connection)
    needed = log + max(0, copy.stat().st_size - size) + (size if keeps_copy and version < VERSION else 0)
    return Rehearsal(
        version=version,
        known=VERSION,
        seconds=round(seconds, 3),
        bytes=size,
        needed_bytes=needed,
        free_bytes=shutil.disk_usage(path.parent).free,
        rows=rows,
        unindexed=unindexed,
    )
