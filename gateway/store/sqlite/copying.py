"""A copy of a file as it is now, also beside a running gateway, and whatever version of Legato wrote it."""

from __future__ import annotations

import glob
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

import apsw

from gateway.runtime.errors import StoreError, StoreUnavailable
from gateway.runtime.owners import leave_to_owner
from gateway.store.sqlite.connection import FULL, check_undamaged, connect_reader, is_full, unavailable
from gateway.store.sqlite.mark import check_whole
from gateway.store.sqlite.migrations import check_known
from gateway.store.sqlite.swapping import sync

HALF: Final = ".partial"  # the end of the name of a file that is being made
_LEFT: Final = 3_600.0  # seconds in which nobody wrote to it, so nobody is making it


def copy_store(source: Path, target: Path) -> None:
    """Copy a store's file to `target`, which appears only when the copy is whole. Raises StoreError."""
    if target.resolve() == source.resolve():
        raise StoreError("A backup cannot replace the store it is made from. Choose another path.")
    check_there(source)
    with made_whole(target) as partial:
        fill(source, partial, target)


@contextmanager
def scratch(target: Path, prefix: str = "") -> Iterator[Path]:
    """An empty file beside `target`, for its owner alone, that is gone after the block. It is a file of its own:
    another process may make one of this name meanwhile. What killed processes left is known by its `prefix`, which is
    the name of `target` if it is always the same. Raises StoreUnavailable."""
    prefix = prefix or target.name
    with written(target):
        descriptor, name = tempfile.mkstemp(prefix=prefix, suffix=HALF, dir=target.parent)
        leave_to_owner(target.parent, descriptor)
        os.close(descriptor)
    partial = Path(name)
    try:
        _remove_halves(prefix, partial)
        yield partial
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)


@contextmanager
def made_whole(target: Path, prefix: str = "") -> Iterator[Path]:
    """The same, for a file that takes the name `target` after the block, and not after an error. Raises
    StoreUnavailable, also for the block's OSError."""
    with written(target), scratch(target, prefix) as partial:
        yield partial
        sync(partial)
        os.replace(partial, target)
        sync(target.parent)


@contextmanager
def written(target: Path) -> Iterator[None]:
    """A block whose OSError is one of writing this file. Raises StoreUnavailable."""
    try:
        yield
    except OSError as error:
        if is_full(error):
            raise StoreUnavailable(FULL.format(path=target)) from error
        why = f"{target} cannot be written ({error.strerror})"
        raise StoreUnavailable(f"{why}. Check that its folder exists and that you may write there.") from error


def check_there(path: Path) -> None:
    """Raises StoreUnavailable where there is no file."""
    if not path.exists():
        raise StoreUnavailable(f"There is no store at {path}. Run `legato chat` to make one, or correct store.url.")


def fill(source: Path, copy: Path, target: Path) -> None:
    """Copy a store's file into an empty one, which people know as `target`. Raises StoreUnavailable."""
    try:
        reader = connect_reader(source)
        with closing(reader):
            check_known(reader, source)
            check_whole(reader, source)
            _copy(reader, copy, source, target)
    except apsw.Error as error:
        raise unavailable(error, source) from error


def _copy(reader: apsw.Connection, copy: Path, source: Path, target: Path) -> None:
    try:
        with closing(apsw.Connection(str(copy))) as destination:
            with destination.backup("main", reader, "main") as backup:
                backup.step(-1)  # one read transaction: no writer can make it start anew
            check_undamaged(destination, source)  # else it would take the place of a good copy
    except (apsw.FullError, apsw.IOError) as error:
        raise unavailable(error, target) from error


def _remove_halves(prefix: str, mine: Path) -> None:
    """Remove what killed backups left under this name: nobody has written to it for long before `mine` was made. No
    lock tells, because over NFS a lock of the whole file shuts out SQLite's own ones (flock(2))."""
    now = mine.stat().st_mtime
    for half in mine.parent.glob(f"{glob.escape(prefix)}{'[a-z0-9_]' * 8}{HALF}"):
        try:
            known = half.lstat()
            if stat.S_ISREG(known.st_mode) and now - known.st_mtime > _LEFT:
                for part in ("", "-journal", "-wal", "-shm"):
                    half.with_name(half.name + part).unlink(missing_ok=True)
        except OSError:
            continue  # gone by now, or it may not be removed
