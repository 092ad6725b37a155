"""What POSIX systems have and Windows lacks, under names that can be imported everywhere."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
from collections.abc import Callable
from typing import IO, Any, Final


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


fcntl: Final = _module("fcntl")
resource: Final = _module("resource")
termios: Final = _module("termios")
OWN: Final = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""The flags of files that are for this process alone, and hold bytes."""
NO_LINK: Final = getattr(os, "O_NOFOLLOW", 0)
HANGUP: Final[signal.Signals | None] = getattr(signal, "SIGHUP", None)
_BEHIND: Final = 0x4000_0000  # a byte that no lock file has: on Windows, nobody else may read a byte that is locked


def user() -> int:
    """The number of this process's user; -1 where users have none."""
    return os.geteuid() if hasattr(os, "geteuid") else -1


def lock(file: IO[Any] | int, *, waits: bool = True, shared: bool = False) -> None:
    """Lock an open file until it is closed. Raises BlockingIOError if another process has it, and this one `waits` not;
    another OSError where there are no locks."""
    descriptor = file if isinstance(file, int) else file.fileno()
    if fcntl is not None:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if waits else fcntl.LOCK_NB))
        return
    windows = importlib.import_module("msvcrt")
    at = os.lseek(descriptor, 0, os.SEEK_CUR)
    os.lseek(descriptor, _BEHIND, os.SEEK_SET)
    try:
        windows.locking(descriptor, windows.LK_LOCK if waits else windows.LK_NBLCK, 1)
    except PermissionError as error:
        raise BlockingIOError(error.errno, error.strerror) from error
    finally:
        os.lseek(descriptor, at, os.SEEK_SET)


def write_at(descriptor: int, data: bytes, at: int) -> int:
    """Write in this place of a file; how many bytes were written."""
    if hasattr(os, "pwrite"):
        return os.pwrite(descriptor, data, at)
    os.lseek(descriptor, at, os.SEEK_SET)
    return os.write(descriptor, data)


def on_signal(number: signal.Signals | None, call: Callable[[], object]) -> None:
    """Have a signal call this in the running loop, where the system has the signal."""
    loop = asyncio.get_running_loop()
    if HANGUP is not None and number is not None:
        loop.add_signal_handler(number, call)
    elif number is not None:  # the loops of Windows take none
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(call))
