"""An upgrade tried on a copy: what a start of this version would do to the store, without doing it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
from msgspec import Struct

from gateway.runtime.clock import Clock
from gateway.store.shared.facts import Record, Tally
from gateway.store.sqlite import former, search
from gateway.store.sqlite.bringing import prepare
from gateway.store.sqlite.connection import check_undamaged, connect_writer, unavailable
from gateway.store.sqlite.copying import check_there, fill, written
from gateway.store.sqlite.holdings import differences, holdings
from gateway.store.sqlite.migrations import COLUMNS, MIGRATIONS, migrate
from gateway.store.sqlite.records import FileRecords
from gateway.store.steps import moving
from gateway.store.steps.facts import dump


class Rehearsal(Struct, frozen=True, kw_only=True):
    """`version` is the store's, `known` this program's. `steps` were applied, in so many `seconds`; the store has
    `bytes`, its upgrade takes `needed_bytes` more for a while (with the copy that is kept), and the disk has
    `free_bytes`. `rows` by table; `differences`: sentences about what is not as it was; `unindexed`: messages whose
    search entries are made anew after the start."""

    version: int
    known: int
    steps: Sequence[str]
    seconds: float
    bytes: int
    needed_bytes: int
    free_bytes: int
    rows: Mapping[str, int]
    differences: Sequence[str]
    unindexed: int


def rehearse(path: Path, clock: Clock, *, keeps_copy: bool) -> Rehearsal:
    """Bring a copy of the store to this version, and compare. Raises StoreUnavailable where a start would fail."""
    check_there(path)
    with written(path), TemporaryDirectory(prefix=f"{path.name}.rehearsed-", dir=path.parent) as folder:
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
        before = holdings(connection)
        began = clock.monotonic()
        migrate(connection, path, to=len(COLUMNS))
        seconds = clock.monotonic() - began
        found = differences(before, connection)
        if version < len(MIGRATIONS):
            prepare(connection)
            facts = _tallied(former.dump(connection, 0.0))
            began = clock.monotonic()
            migrate(connection, path)
            seconds += clock.monotonic() - began
            found += _sentences(facts, _tallied(dump(FileRecords(connection))))
        log = copy.with_name(f"{copy.name}-wal").stat().st_size
        check_undamaged(connection, path)
        unindexed = search.left(connection)
    needed = log + max(0, copy.stat().st_size - size) + (size if keeps_copy and version < len(MIGRATIONS) else 0)
    return Rehearsal(
        version=version,
        known=len(MIGRATIONS),
        steps=MIGRATIONS[version:],
        seconds=round(seconds, 3),
        bytes=size,
        needed_bytes=needed,
        free_bytes=shutil.disk_usage(path.parent).free,
        rows=before.counts,
        differences=found,
        unindexed=unindexed,
    )


def _tallied(pages: Iterable[Sequence[Record]]) -> Tally:
    tally = Tally()
    for page in pages:
        tally.add(map(moving.normal, page))
    return tally


def _sentences(before: Tally, after: Tally) -> list[str]:
    kind = before.differing(after)
    if kind is None:
        return []
    return [f"{before.counts[kind]:,} {kind} became {after.counts[kind]:,}, or are not as they were"]
