"""`OUT.progress`: the results of a run over files, so that one which was killed asks nobody twice.

One JSON object a line: first the settings, then a row for each line of the sources that was worked on: its key, the
line that takes its place (null: none does), and its figures. The key is made of the line's own bytes, so a source may
change between two runs. What a kill left of a row is cut off.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from gateway.runtime import posix
from gateway.runtime.errors import UserError
from gateway.trajectories.compressor import Line

Row = dict[str, Any]


class Journal:
    """The progress file, held by one process at a time. Raises UserError if it cannot be used."""

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self._path = path
        self._places: dict[str, int] = {}  # where each row begins, by its key
        try:
            self._file: BinaryIO = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | posix.OWN, 0o600), "r+b")
        except OSError as error:
            raise self._unusable(error) from error
        with ExitStack() as held:
            held.callback(self._file.close)
            self._hold()
            self._take_up(dict(settings))
            held.pop_all()  # kept open: it can be used
        self.resumed = bool(self._places)

    def __contains__(self, line: bytes) -> bool:
        return _key(line) in self._places

    def note(self, line: bytes, result: Line) -> None:
        """Note what became of a line."""
        data = None if result.data == line else result.data.decode()
        key, place = _key(line), self._file.seek(0, os.SEEK_END)
        self._write({"key": key, "data": data, "row": result.row()})
        self._places[key] = place

    def result(self, line: bytes) -> tuple[bytes, Row]:
        """What became of a line: the line in its place, and its figures. Raises KeyError."""
        self._file.seek(self._places[_key(line)])
        found = json.loads(self._file.readline())
        return line if found["data"] is None else found["data"].encode(), found["row"]

    def close(self, *, remove: bool = False) -> None:
        """Let go of the file, and delete it if the run is over."""
        if remove:
            self._path.unlink(missing_ok=True)
        self._file.close()

    def _hold(self) -> None:
        try:
            posix.lock(self._file, waits=False)
            gone = os.fstat(self._file.fileno()).st_nlink == 0  # its owner finished between open and lock
        except OSError:
            gone = True
        if gone:
            raise UserError(f"another run is writing there, as {self._path} says: wait until it has ended")

    def _take_up(self, settings: Row) -> None:
        kept = 0
        for data in self._file:
            if not data.endswith(b"\n"):
                break
            try:
                row = json.loads(data)
                if kept:
                    self._places[row["key"]] = kept
            except (ValueError, KeyError, TypeError):
                raise UserError(f"{self._path} is damaged: delete it to start afresh") from None
            if not kept and row != settings:
                told = ", ".join(f"{name} {value}" for name, value in row.items())
                raise UserError(
                    f"a run that was not finished stands there, made with other options ({told}): give the same ones "
                    f"to finish it, or delete {self._path}"
                )
            kept += len(data)
        self._file.seek(kept)
        self._file.truncate()
        if not kept:
            self._write(settings)

    def _write(self, row: Mapping[str, Any]) -> None:
        try:
            self._file.write(json.dumps(row).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> UserError:
        return UserError(f"{self._path} cannot be written ({error.strerror}); mend that and run the command again")


def _key(line: bytes) -> str:
    return blake2b(line, digest_size=16).hexdigest()
