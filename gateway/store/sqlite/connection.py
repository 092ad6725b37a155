"""Connections to the file. Failures of SQLite become StoreUnavailable here."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import apsw

from gateway.runtime import posix
from gateway.runtime.errors import TOO_FEW_FILES, StoreUnavailable
from gateway.runtime.owners import leave_to_owner
from gateway.store.kinds import MessageRecord

Row = tuple[Any, ...]

APPLICATION_ID: Final = 0x4C674174  # "LgAt": marks a file as Legato's
BUSY_MS: Final = 5_000  # a backup tool or a shell may hold the file for a moment
LOG_PAGES: Final = 4_000  # 16 MB of log before it is folded back into the file
_WAL_BYTES: Final = 64 * 1024 * 1024  # what is left of the log file after a burst
_LOG_AHEAD: Final = 256  # pages of the log that are made before they are needed
_LOG_PAGE: Final = 4_096 + 24  # bytes of a page and its header there
_CACHE_KIB: Final = 16 * 1024
_FILES: Final = 12  # that four connections hold open: the file, its log and its index each

FULL: Final = "The disk that holds {path} is full. Free some space, then try again."
DAMAGED: Final = "{path} is damaged{detail}. Restore the last backup, or move the file away to start empty."
_SENTENCES: Final[tuple[tuple[type[apsw.Error], str], ...]] = (
    (apsw.FullError, FULL),
    (apsw.NotADBError, "{path} is not a Legato store. Move that file away or set another store.url."),
    (apsw.CorruptError, DAMAGED.replace("{detail}", "")),
    (apsw.CantOpenError, "{path} cannot be opened. Check that its folder exists and that you may write there."),
    (apsw.ReadOnlyError, "{path} cannot be written. Check the permissions of the file and of its folder."),
    (apsw.PermissionsError, "{path} cannot be used. Check the permissions of the file and of its folder."),
    (apsw.BusyError, "{path} is held by another program. Close that program, then try again."),
    (apsw.LockedError, "{path} is held by another program. Close that program, then try again."),
    (apsw.IOError, "Reading or writing {path} failed ({detail}). Check the disk, then try again."),
)


def unavailable(error: apsw.Error, path: Path, broken: Callable[[str], None] = lambda _: None) -> StoreUnavailable:
    """The sentence for a failure of SQLite. `broken` is given the sentence of a failure that no later try mends."""
    found = StoreUnavailable(_sentence(error, path))
    if isinstance(error, apsw.CorruptError | apsw.NotADBError) and _code(error) != apsw.SQLITE_CORRUPT_VTAB:
        broken(str(found))
    return found


def _sentence(error: apsw.Error, path: Path) -> str:
    if isinstance(error, apsw.CantOpenError) and _has_too_few_files():
        return f"{path} cannot be opened: {TOO_FEW_FILES}"
    if _code(error) == apsw.SQLITE_IOERR_SHMSIZE:  # no room for the index of the log, also to read
        error = apsw.FullError()
    for kind, sentence in _SENTENCES:
        if isinstance(error, kind):
            return sentence.format(path=path, detail=error)
    return f"The store at {path} failed: {error}."


def _code(error: apsw.Error) -> int:
    return int(getattr(error, "extendedresult", 0))  # only what SQLite itself raised has one


def _has_too_few_files() -> bool:
    """Whether this process may open no more files than a connection needs, which SQLite does not tell."""
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(_FILES))
    except OSError as error:
        return error.errno in (errno.EMFILE, errno.ENFILE)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    return False


def is_full(error: OSError) -> bool:
    """Whether there is no room, on the disk or in what a user may fill of it."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def check_undamaged(connection: apsw.Connection, path: Path) -> None:
    """Read the whole file. Raises StoreUnavailable if a page of it is not what SQLite wrote."""
    found = one(connection, "PRAGMA quick_check(1)")
    if found is None or found[0] != "ok":
        detail = "" if found is None else f" ({str(found[0]).splitlines()[-1]})"
        raise StoreUnavailable(DAMAGED.format(path=path, detail=detail))


def make_private(path: Path) -> None:
    """Make an empty file that only its owner may read, if there is none: the file will hold people's
    conversations. SQLite gives the same permissions to the log and the index beside the file. If the file cannot be
    made here, SQLite will say why."""
    if not path.exists():  # to open and close it would drop the locks that SQLite holds on it for this process
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | posix.OWN, 0o600)
            leave_to_owner(path.parent, descriptor)
            os.close(descriptor)


def _keep_plans(connection: apsw.Connection) -> None:
    """Let no plan depend on the values that are bound: else SQLite prepares many statements anew at each use."""
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)


class Connection(apsw.Connection):
    """A connection that writes. `stored`: the messages that are stored but not in the index yet. Each change makes
    a new tuple, so a part that is rolled back puts the old one back."""

    stored: tuple[MessageRecord, ...] = ()


class LogFile:
    """The hook of a connection's log file: keeps the file longer than what is written to it, and folds the log back
    into the store as SQLite's own hook does.

    A commit that makes a file longer waits for the file system's journal, too: where others write to the same disk,
    many times as long as one that writes over what is there. SQLite stops reading a log at its first page that is not
    of the present round (its format, "WAL file format"), so pages of zeros are no part of it.
    """

    def __init__(self, path: Path) -> None:
        self._path = f"{path}-wal"
        self._pages = 0  # in the log after the last commit
        self._room = 0  # in the file

    def __call__(self, connection: apsw.Connection, name: str, pages: int) -> int:
        """After a commit: the log has so many `pages` now."""
        if pages + _LOG_AHEAD > self._room or pages < self._pages:  # it may have been cut off
            with suppress(OSError):  # a full disk is told of by the commit that meets it
                self._room = lengthen(self._path, pages + _LOG_AHEAD)
        self._pages = pages
        if pages >= LOG_PAGES:
            with suppress(apsw.Error):  # the next commit tries it again
                connection.wal_checkpoint(name)
        return apsw.SQLITE_OK


def lengthen(path: str, pages: int) -> int:
    """Write zeros behind a log file, twice as many as are missing, unless it has so many pages; return those it has."""
    descriptor = os.open(path, os.O_WRONLY | posix.OWN)
    try:
        size = os.fstat(descriptor).st_size
        if (room := size // _LOG_PAGE) >= pages:
            return room
        more = bytes((pages - room + _LOG_AHEAD) * _LOG_PAGE)
        return (size + posix.write_at(descriptor, more, size)) // _LOG_PAGE
    finally:
        os.close(descriptor)


def check_ours(connection: apsw.Connection, path: Path) -> None:
    """Raises StoreUnavailable for another program's file."""
    version, application = connection.pragma("user_version"), connection.pragma("application_id")
    if application == APPLICATION_ID:
        return
    if version or application or one(connection, "SELECT 1 FROM sqlite_schema LIMIT 1"):
        raise StoreUnavailable(f"{path} belongs to another program. Set another store.url.")


def connect_writer(path: Path) -> Connection:
    """The one connection that writes: write-ahead log, every commit on the disk when it returns.

    Foreign keys stay off: the statements of this room keep references whole, and nobody else writes. A check of
    every reference would cost time with every message.
    """
    make_private(path)
    connection = Connection(str(path))
    _keep_plans(connection)
    connection.set_busy_timeout(BUSY_MS)
    try:
        check_ours(connection, path)  # before anything is set that stays in the file
    except StoreUnavailable:
        connection.close()
        raise
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = OFF",
        f"journal_size_limit = {_WAL_BYTES}",
        f"cache_size = -{_CACHE_KIB}",
        "temp_store = MEMORY",
        "secure_delete = ON",  # what is deleted is overwritten: nothing that was forgotten is left in the file
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.set_wal_hook(LogFile(path))
    return connection


def connect_reader(path: Path) -> apsw.Connection:
    """A connection that cannot write. Raises apsw.CantOpenError if there is no file."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    _keep_plans(connection)
    connection.set_busy_timeout(BUSY_MS)
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}").fetchall()
    return connection


def marks(columns: str) -> str:
    """A question mark for each of these columns."""
    return ",".join("?" * (columns.count(",") + 1))


def many(connection: apsw.Connection, sql: str, bindings: apsw.Bindings = ()) -> list[Row]:
    """All rows at once, so that no cursor stays open and holds the log back."""
    return connection.execute(sql, bindings).fetchall()


def one(connection: apsw.Connection, sql: str, bindings: apsw.Bindings = ()) -> Row | None:
    """The first row, or None."""
    rows = connection.execute(sql, bindings).fetchall()
    return rows[0] if rows else None


def change(connection: apsw.Connection, sql: str, bindings: apsw.Bindings = ()) -> int:
    """Run a statement that writes; returns how many rows were changed."""
    connection.execute(sql, bindings).fetchall()
    return connection.changes()
