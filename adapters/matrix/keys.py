"""The secrets of the bot's device, in a file of the home that nobody else may read: the login, and the keys and
sessions of its encryption. These are encrypted once more, with a key that lies beside them.

Each home is a device of its own. Several processes of one home share the file: what is read and written back is one
transaction.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

_KEY_BYTES: Final = 32


class KeyFile:
    """Texts by name, and notes (`Notebook`) of the login. `key` encrypts what the library pickles."""

    def __init__(self, home: Path, user: str) -> None:
        folder = home / "matrix"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = re.sub(r"[^\w.-]", "_", user[1:])
        self.key = _secret(folder / f"{name}.key")
        kept = folder / f"{name}.db"
        os.close(os.open(kept, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        self._file = sqlite3.connect(kept, isolation_level=None)
        self._file.execute("CREATE TABLE IF NOT EXISTS kept (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID")

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Until the block ends, no other process changes anything; what it wrote is durable then, or forgotten if it
        failed."""
        self._file.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._file.execute("ROLLBACK")
            raise
        self._file.execute("COMMIT")

    def get(self, name: str) -> str | None:
        """What is kept under a name."""
        found = self._file.execute("SELECT value FROM kept WHERE name = ?", (name,)).fetchone()
        return None if found is None else str(found[0])

    def put(self, name: str, value: str) -> None:
        """Keep this under a name."""
        self._file.execute("INSERT OR REPLACE INTO kept VALUES (?, ?)", (name, value))

    def forget(self, beginning: str) -> None:
        """Drop all whose names begin so."""
        self._file.execute("DELETE FROM kept WHERE substr(name, 1, ?) = ?", (len(beginning), beginning))

    async def read(self) -> Mapping[str, str]:
        """The notes."""
        found = self._file.execute("SELECT substr(name, 6), value FROM kept WHERE name LIKE 'note %'")
        return dict(found.fetchall())

    async def write(self, changes: Mapping[str, str | None]) -> None:
        """Change notes."""
        with self.changing():
            for name, value in changes.items():
                self.forget(f"note {name}") if value is None else self.put(f"note {name}", value)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def _secret(path: Path) -> bytes:
    """The key that is there; a new one if there is none."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with suppress(FileExistsError), open(os.open(path, flags, 0o600), "wb") as file:
        file.write(os.urandom(_KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    return path.read_bytes()
