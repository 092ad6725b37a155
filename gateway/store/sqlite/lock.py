"""The file beside the database that says which gateway process owns it."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from gateway.runtime.errors import StoreLocked, StoreUnavailable


class LockFile:
    """`<database>.lock`, held with flock: the kernel lets go of the lock however the process ends.

    The file stays behind on purpose: if it were removed, two processes could lock two files.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(database.name + ".lock")
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock. Raises StoreLocked if another process holds the lock, StoreUnavailable if the file cannot
        be made."""
        try:
            # A link here could lead to any file of the operator's, which would then be emptied.
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise StoreUnavailable(
                f"{self._path} cannot be written ({error.strerror}): "
                "check that its folder exists, that you may write there, and that it is no link."
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise StoreLocked(
                f"Another gateway (process {self.owner()}) is using {self._database}: "
                "stop it first, or give this one another store.url."
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode("ascii"), 0)
        self._descriptor = descriptor

    def owner(self) -> str:
        """The number of the process that holds the lock, or held it last; "unknown" if the file does not say."""
        try:
            return self._path.read_text("ascii", "replace").strip() or "unknown"
        except OSError:
            return "unknown"

    def release(self) -> None:
        """Let go. Idempotent."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None
