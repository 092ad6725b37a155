"""The locks that say which gateway process owns the database.

The file `<database>.lock` names the process. It cannot tell that a link leads to the same database, so a byte of the
database itself is locked, too, beyond those that SQLite uses (https://www.sqlite.org/src/file?name=src/os.h:
PENDING_BYTE and the 511 behind it). That lock is one of an open file description (F_OFD_SETLK of fcntl(2), Linux): it
stays when another descriptor of the file is closed. The other way round, a descriptor that is closed drops the locks
that SQLite holds in this process; so ours is closed only when SQLite has no connection.

The kernel lets go of both locks however the process ends.
"""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import Final

from gateway.runtime import posix
from gateway.runtime.errors import StoreLocked, StoreUnavailable
from gateway.runtime.owners import leave_to_owner
from gateway.store.sqlite.connection import FULL, is_full, make_private
from gateway.store.sqlite.swapping import finish

_BYTE: Final = 0x4000_0000 + 4_096
_UNKNOWN: Final = (errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)  # the file system has no such locks


class LockFile:
    """`<database>.lock`, held with flock, and a byte of the database.

    The file stays behind on purpose: if it were removed, two processes could lock two files.
    """

    def __init__(self, database: Path) -> None:
        self._database = database
        self._path = database.with_name(database.name + ".lock")
        self._descriptor: int | None = None
        self._itself: int | None = None
        self.was_left = False
        """Whether a process that held it was killed, and nobody has looked through the database since."""

    def acquire(self) -> None:
        """Take the locks, before SQLite opens the database. Raises StoreLocked if another process holds one,
        StoreUnavailable if the file cannot be made."""
        try:
            # A link here could lead to any file of the operator's, which would then be emptied.
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | posix.OWN | posix.NO_LINK, 0o600)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            posix.lock(descriptor, waits=False)
        except OSError as error:
            os.close(descriptor)
            raise StoreLocked(
                f"Another Legato (process {self.owner()}), perhaps an open `legato chat`, uses {self._database}. Stop "
                "it first. A second bot needs a store.url of its own."
            ) from error
        leave_to_owner(self._path.parent, descriptor)
        self.was_left = os.fstat(descriptor).st_size > 0
        owner = f"{os.getpid()}\n".encode("ascii")
        try:
            posix.write_at(descriptor, owner, 0)
            os.ftruncate(descriptor, len(owner))
        except OSError as error:
            os.close(descriptor)
            raise self._unwritable(error) from error
        self._descriptor = descriptor
        try:
            finish(self._database)  # before the file is made where there is none
        except OSError as error:
            raise self._unwritable(error) from error
        self._lock_database()

    def _unwritable(self, error: OSError) -> StoreUnavailable:
        if is_full(error):
            return StoreUnavailable(FULL.format(path=self._database))
        return StoreUnavailable(
            f"{self._path} cannot be written ({error.strerror}). "
            "Check that its folder exists, that you may write there, and that the file is not a link."
        )

    def _lock_database(self) -> None:
        make_private(self._database)
        try:
            itself = os.open(self._database, os.O_RDWR | posix.OWN)
        except OSError:
            return  # SQLite says why
        command = getattr(posix.fcntl, "F_OFD_SETLK", None)
        try:
            if command is not None:
                wanted = struct.pack("hhqqi0q", posix.fcntl.F_WRLCK, os.SEEK_SET, _BYTE, 1, 0)
                posix.fcntl.fcntl(itself, command, wanted)
        except OSError as error:
            if error.errno not in _UNKNOWN:  # `itself` stays open: the other gateway may be in this process
                raise StoreLocked(
                    f"Another Legato uses the file of {self._database} by another name. Stop it first. A second bot "
                    "needs a store.url of its own."
                ) from error
        self._itself = itself

    def owner(self) -> str:
        """The number of the process that holds the lock, or held it last; "unknown" if the file does not say."""
        try:
            return self._path.read_text("ascii", "replace").strip() or "unknown"
        except OSError:
            return "unknown"

    def release(self) -> None:
        """Let go, after SQLite has closed the database. Idempotent."""
        if self._itself is not None:
            os.close(self._itself)
            self._itself = None
        if self._descriptor is not None:
            if not self.was_left:
                os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = None
