"""Files of lines, read and written one line at a time."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

_LOOKED_AT: Final = 64 * 1024  # bytes at the start by which a file is known again


class RawLine(Struct, frozen=True, kw_only=True):
    """One line, and its end in the file."""

    number: int
    end: int
    data: bytes

    @property
    def blank(self) -> bool:
        """Say whether the line is empty."""
        return not self.data.strip()


class SourceFile:
    """A file that is read. Every method raises OSError."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self.size = os.fstat(self._file.fileno()).st_size
        self.digest = hashlib.sha256(self._file.read(_LOOKED_AT)).hexdigest()

    def lines(self, *, begin: int, number: int) -> Iterator[RawLine]:
        """The lines from byte `begin` on, the first of which has number `number` + 1."""
        self._file.seek(begin)
        for place, data in enumerate(self._file, number + 1):
            begin += len(data)
            yield RawLine(number=place, end=begin, data=data)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


class PartFile:
    """A file that is written as `NAME.part` and gets its name when it is complete. The readers of its source may read
    it. Every method raises OSError."""

    def __init__(self, target: Path, *, like: Path, written: int) -> None:
        """Go on behind the first `written` bytes."""
        self._path = part_of(target)
        self._file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
        shutil.copymode(like, self._path)
        self._file.truncate(written)
        self.written = self._file.seek(written)

    def write(self, data: bytes) -> None:
        """Add bytes; they are the system's when `flush` returns."""
        self.written += self._file.write(data)

    def flush(self) -> None:
        """Hand the added lines over to the system."""
        self._file.flush()

    def sync(self) -> None:
        """Put it on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def part_of(target: Path) -> Path:
    """Return the path of a file while it is being written."""
    return target.with_name(target.name + ".part")


def publish(target: Path) -> None:
    """Give a complete file its name. Idempotent. Raises OSError."""
    part = part_of(target)
    if part.exists():
        part.replace(target)


def written_bytes(target: Path) -> int:
    """Return how many bytes of a file are there, complete or not. 0 if nothing can be seen."""
    for path in (part_of(target), target):
        try:
            return path.stat().st_size
        except OSError:
            continue
    return 0
