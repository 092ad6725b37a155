"""The program on a machine that lacks what Windows lacks: `python -m tests.support.no_posix ask …`.

Its modules are loaded a second time, after what other packages may have needed is gone. Whatever cannot be loaded is
named. Only the locks of Windows are there, made of those of this machine.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib
import os
import pkgutil
import signal
import sys
from types import SimpleNamespace
from typing import Any, NoReturn

ROOMS = ("gateway", "adapters", "legato")
MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
OF_OS = [
    "O_CLOEXEC",
    "O_DIRECTORY",
    "O_NOCTTY",
    "O_NOFOLLOW",
    "O_NONBLOCK",
    "WNOHANG",
    "chown",
    "fchmod",
    "fchown",
    "fork",
    "geteuid",
    "getgroups",
    "getuid",
    "killpg",
    "pread",
    "pwrite",
    "set_blocking",
    "setsid",
]
OF_SIGNAL = [
    "ITIMER_REAL",
    "SIGALRM",
    "SIGCHLD",
    "SIGHUP",
    "SIGKILL",
    "SIGPIPE",
    "SIGUSR1",
    "SIGXCPU",
    "SIGXFSZ",
    "setitimer",
]


def _names() -> list[str]:
    found = [*ROOMS]
    for room in ROOMS:
        found += [each.name for each in pkgutil.walk_packages(importlib.import_module(room).__path__, f"{room}.")]
    return [name for name in found if not name.endswith("__main__") and _loads(name)]


def _loads(name: str) -> bool:
    """Load a module, unless it is of an extra that is not installed."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError:
        return False
    return True


def _locking(descriptor: int, how: int, size: int) -> None:
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | (fcntl.LOCK_NB if how else 0), size, 0, os.SEEK_CUR)
    except OSError as error:
        raise PermissionError(error.errno, error.strerror) from error


def _refuse(*_: Any) -> NoReturn:
    raise RuntimeError("the loops of Windows take no signals")


def main() -> None:
    """Take it all away, load the program again, and run it."""
    names = _names()
    for name in [name for name in sys.modules if name.split(".")[0] in ROOMS]:
        del sys.modules[name]
    sys.modules.update(dict.fromkeys(MODULES))  # type: ignore[arg-type]
    sys.modules["msvcrt"] = SimpleNamespace(LK_LOCK=0, LK_NBLCK=1, locking=_locking)  # type: ignore[assignment]
    for module, gone in ((os, OF_OS), (signal, OF_SIGNAL)):
        for name in gone:
            delattr(module, name)
    for name in names:
        importlib.import_module(name)
    asyncio.SelectorEventLoop.add_signal_handler = _refuse  # type: ignore[assignment, method-assign]
    sys.modules["gateway.runtime.sandbox"].sys = SimpleNamespace(platform="win32")  # type: ignore[attr-defined]
    sys.modules["adapters.console.pipes"].SELECTS = False  # type: ignore[attr-defined]
    importlib.import_module("gateway.__main__").main()


if __name__ == "__main__":
    main()
