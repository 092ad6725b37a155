"""Files of lines, read and written one line at a time."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

LONGEST_LINE: Final = 64 * 1024 * 1024  # bytes; a longer one is passed on without being held in memory
_PIECE: Final = 1024 * 1024
_LOOKED_AT: Final = 64 * 1024  # bytes at the start by which a file is known again


class RawLine(Struct, frozen=True, kw_only=True):
    """One line with its end: bytes `begin` up to `end` of the file. `data` None: it is too long to hold."""

    number: int
    begin: int
    end: int
    data: bytes | None

    @property
    def blank(self) -> bool:
        """Say whether the line is empty."""
        return self.data is not None and not self.data.strip()


class SourceFile:
    """A file that is read. Every method raises OSError."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")
        self.size = os.fstat(self._file.fileno()).st_size
        self.digest = hashlib.sha256(self._file.read(_LOOKED_AT)).hexdigest()

    def lines(self, *, begin: int, number: int) -> Iterator[RawLine]:
        """The lines from byte `begin` on, the first of which has number `number` + 1. Other methods may
        be called between two of them."""
        while True:
            self._file.seek(begin)
            data = self._file.readline(LONGEST_LINE)
            if not data:
                return
            number += 1
            end = begin + len(data)
            whole = len(data) < LONGEST_LINE or data.endswith(b"\n")
            while not whole:
                more = self._file.readline(_PIECE)
                end += len(more)
                whole = not more or more.endswith(b"\n")
                data = b""
            yield RawLine(number=number, begin=begin, end=end, data=data or None)
            begin = end

    def pieces(self, line: RawLine) -> Iterator[bytes]:
        """A line that is too long to hold, bit by bit."""
        place = line.begin
        while place < line.end:
            self._file.seek(place)
            piece = self._file.read(min(_PIECE, line.end - place))
            if not piece:
                raise OSError("it became shorter while it was read")
            place += len(piece)
            yield piece

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
