"""Another store in the place of a file, and another folder in the place of the one beside it: all of it, or nothing.

What is to come lies whole in one folder beside the store. The folder gets its final name in one step, and this is the
moment of the change: whoever has the store's lock next does what is left to do, and every step may be repeated. What
was there before is kept in another folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from gateway.runtime import posix
from gateway.runtime.owners import leave_to_owner

_PLAN: Final = "swap.json"
_PARTS: Final = ("", "-wal", "-shm", "-journal")  # of a file of SQLite


class Swap(Struct, frozen=True, kw_only=True):
    """`moves`: (name in the folder, name beside the store) of what is put in place; `aside`: the folder beside the
    store that keeps what was there."""

    moves: Sequence[tuple[str, str]]
    aside: str


def prepared(path: Path) -> Path:
    """The folder of what takes a store's place."""
    return path.with_name(f"{path.name}.restored")


def swap(path: Path, folder: Path, plan: Swap) -> None:
    """Put what lies in `folder`, which is on the same disk, in the place of the store. Its lock is held. Raises
    OSError."""
    (folder / _PLAN).write_text(json.dumps(asdict(plan)), encoding="utf-8")
    _sync_all(folder)
    os.rename(folder, prepared(path))
    finish(path)


def finish(path: Path) -> None:
    """Do what is left of a swap that was begun, if one was. The store's lock is held. Raises OSError."""
    folder = prepared(path)
    if not folder.exists():
        return
    plan_file = folder / _PLAN
    if plan_file.exists():  # else all is in its place, and only the folder is left
        sync(path.parent)
        _carry_out(Swap(**json.loads(plan_file.read_text(encoding="utf-8"))), path, folder)
        sync(path.parent)
        plan_file.unlink()
    folder.rmdir()


def _carry_out(plan: Swap, path: Path, folder: Path) -> None:
    aside = path.with_name(plan.aside)
    aside.mkdir(mode=0o700, exist_ok=True)
    leave_to_owner(path.parent, aside)
    for inside, name in plan.moves:
        if os.path.lexists(folder / inside):
            for part in _PARTS:
                _keep(path.with_name(name + part), aside)
            os.rename(folder / inside, path.with_name(name))
    with suppress(OSError):  # nothing was there before
        aside.rmdir()


def _keep(old: Path, aside: Path) -> None:
    """Move it there, under a name that nothing has: nothing that was kept before is lost. A file without content is
    no store."""
    if not os.path.lexists(old):
        return
    if old.is_file() and not old.stat().st_size:
        old.unlink()
        return
    kept = aside / old.name
    while os.path.lexists(kept):
        kept = kept.with_name(f"{kept.name}~")
    os.rename(old, kept)


def _sync_all(folder: Path) -> None:
    for root, _, files in os.walk(folder):
        for name in files:
            if not os.path.islink(os.path.join(root, name)):
                sync(Path(root, name))
        sync(Path(root))


def sync(path: Path) -> None:
    """Have the file's content, or the folder's names, on the disk when this returns."""
    descriptor = os.open(path, os.O_RDONLY | posix.OWN)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
