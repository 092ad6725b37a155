"""`OUT.progress`: how far a run over files has come, so that a killed one goes on where it was.

One JSON object a line: first the settings, then for each file what it was (`begun`), one row for each
trajectory once its line is written, and that the file is complete (`done`). A row says how far its
file was read and written, in bytes. Output is written before its row: what stands behind the last
row is cut off and made again, so no line is lost and none is written twice, whenever the process is
killed. (A power cut may take what the system had not yet put on the disk; rows of such lines are
dropped as well, as far as the file's length shows it.)
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from gateway.runtime.errors import UserError
from gateway.trajectories.metrics import Totals

Row = dict[str, Any]


class FileState(Struct, kw_only=True):
    """The progress of one file: bytes read and written, lines read. `size`: the file's, at the start."""

    size: int
    read: int = 0
    written: int = 0
    lines: int = 0
    done: bool = False


class Journal:
    """The progress file, held by one process at a time. Raises UserError if it cannot be used."""

    def __init__(self, path: Path, settings: Mapping[str, Any], written: Callable[[str], int]) -> None:
        """Open it or begin it. `written` gives the bytes that there are of a file's output."""
        self.totals = Totals()
        self.files: dict[str, FileState] = {}
        self._path = path
        self._settings = dict(settings)
        self._written = written
        try:
            self._file: BinaryIO = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
        except OSError as error:
            raise self._unusable(error) from error
        with ExitStack() as held:
            held.callback(self._file.close)
            self._hold()
            self.resumed = self._replay()
            held.pop_all()  # kept open: it can be used

    def begin(self, name: str, *, size: int) -> FileState:
        """Note that a file is begun."""
        state = FileState(size=size)
        self._write({"begun": name, "size": size})
        self.files[name] = state
        return state

    def note(self, name: str, row: Mapping[str, Any], *, line: int, read: int, written: int) -> None:
        """Note that a trajectory's line is written."""
        whole = {"file": name, "line": line, "read": read, "written": written, **row}
        self._write(whole)
        self._take(whole)

    def end(self, name: str) -> None:
        """Note that a file is complete."""
        self._write({"done": name})
        self.files[name].done = True

    def rows(self) -> Iterator[Row]:
        """Yield the rows of the metrics file, one trajectory after the other."""
        self._file.seek(0)
        for data in self._file:
            row = json.loads(data)
            if "file" in row:
                del row["read"], row["written"]
                yield row

    def close(self, *, remove: bool = False) -> None:
        """Let go of the file, and delete it if the run is over."""
        if remove:
            self._path.unlink(missing_ok=True)
        self._file.close()

    def _hold(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            gone = os.fstat(self._file.fileno()).st_nlink == 0  # its owner finished between open and lock
        except OSError:
            gone = True
        if gone:
            raise UserError(f"another run is writing there, as {self._path} says: wait until it has ended")

    def _replay(self) -> bool:
        """Take up the noted progress; whether there was anything. Rows that are torn or ahead of the output go."""
        kept = 0
        for data in self._file:
            if not data.endswith(b"\n"):
                break
            try:
                row = json.loads(data)
                if "file" in row and row["written"] > self._written(row["file"]):
                    break
                self._take(row) if kept else self._check_settings(row)
            except (ValueError, KeyError, TypeError, AttributeError):
                raise UserError(
                    f"{self._path} is damaged: delete it and the .part files beside it to start afresh"
                ) from None
            kept += len(data)
        self._file.seek(kept)
        self._file.truncate()
        if not kept:
            self._write(self._settings)
        return kept > 0

    def _check_settings(self, earlier: Row) -> None:
        if earlier != self._settings:
            told = ", ".join(f"{name} {value}" for name, value in earlier.items())
            raise UserError(
                f"a run that was not finished stands there, made with other options ({told}): give the same ones to "
                f"finish it, or delete {self._path} and the .part files beside it"
            )

    def _take(self, row: Row) -> None:
        if "begun" in row:
            self.files[row["begun"]] = FileState(size=row["size"])
        elif "done" in row:
            self.files[row["done"]].done = True
        else:
            state = self.files[row["file"]]
            state.read, state.written, state.lines = row["read"], row["written"], row["line"]
            self.totals.add(row)

    def _write(self, row: Mapping[str, Any]) -> None:
        try:
            self._file.write(json.dumps(row).encode() + b"\n")
            self._file.flush()
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> UserError:
        return UserError(f"{self._path} cannot be written ({error.strerror}); mend that and run the command again")
