"""Which backups of a folder are kept: the newest of each of the last days, weeks and months. Pure, except for a list of
what was made, beside the backups: nothing else is ever deleted."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from gateway.runtime.owners import leave_to_owner

MADE: Final = ".legato-backups"  # the list: a line for each, the store and the name
_STAMP: Final = "%Y%m%dT%H%M%SZ"
_NAME: Final = re.compile(r"legato-(\d{8}T\d{6}Z)\.tar(\.age)?")
_PART: Final = re.compile(r"(\d{1,4})([dwm])")
_PERIODS: Final[dict[str, Callable[[datetime], tuple[int, ...]]]] = {
    "d": lambda at: (at.year, at.month, at.day),
    "w": lambda at: tuple(at.isocalendar()[:2]),
    "m": lambda at: (at.year, at.month),
}


class Keep(Struct, frozen=True, kw_only=True):
    """How many days, weeks and months keep one backup each."""

    d: int = 0
    w: int = 0
    m: int = 0

    @classmethod
    def parse(cls, text: str) -> Keep:
        """Read such a text as `7d,4w,6m`. Raises ValueError, which says what it must be."""
        parts = [_PART.fullmatch(each.strip()) for each in text.split(",")]
        found = {each[2]: int(each[1]) for each in parts if each}
        if None in parts or len(found) < len(parts) or not any(found.values()):
            raise ValueError(f'must be days, weeks and months such as "7d,4w,6m", not {text!r}')
        return cls(**found)


def file_name(now: float, *, sealed: bool) -> str:
    """The name of a backup that is made now (seconds since the epoch)."""
    return f"legato-{datetime.fromtimestamp(now, UTC):{_STAMP}}.tar{'.age' if sealed else ''}"


def superfluous(names: Iterable[str], keep: Keep) -> list[str]:
    """The backups that need not be kept, oldest first. Others than backups are none."""
    dated = sorted((found[1], name) for name in names if (found := _NAME.fullmatch(name)))
    kept: set[str] = set()
    for unit, period in _PERIODS.items():
        newest = {period(datetime.strptime(stamp, _STAMP)): name for stamp, name in dated}
        kept.update(list(newest.values())[len(newest) - min(len(newest), getattr(keep, unit)) :])
    return [name for _, name in dated if name not in kept]


def note_made(folder: Path, origin: str, name: str) -> None:
    """Note, before it is there, that a store's backup of this name is ours. Raises OSError."""
    descriptor = os.open(folder / MADE, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        leave_to_owner(folder, descriptor)
        os.write(descriptor, f"{origin}\t{name}\n".encode("utf-8", "surrogateescape"))
    finally:
        os.close(descriptor)


def thin_out(folder: Path, origin: str, keep: Keep) -> list[str]:
    """Delete the backups of this store that need not be kept; returns their names. Raises OSError."""
    text = (folder / MADE).read_text("utf-8", "surrogateescape")
    ours = {name for line in text.splitlines() for store, _, name in [line.partition("\t")] if store == origin}
    doomed = superfluous((each for each in ours if (folder / each).is_file()), keep)
    for name in doomed:
        (folder / name).unlink()
    return doomed
