"""Run a command under the filter of system calls of a systemd unit: `python -m tests.support.sandbox UNIT COMMAND…`.

For machines where no systemd runs. The calls of each group are asked of `systemd-analyze`; libseccomp, which systemd
brings, sets the filter. The unit's other lines are not tried by this."""

from __future__ import annotations

import ctypes
import errno
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_ALLOW: Final = 0x7FFF0000
_REFUSE: Final = 0x00050000 | errno.EPERM
_ADDRESSES: Final = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}


def values(unit: Path, key: str) -> list[str]:
    """The values of a key in a unit, in order."""
    return re.findall(rf"^{key}=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE)


def calls(names: Iterable[str]) -> Iterator[str]:
    """The system calls that these names and `@groups` stand for."""
    for name in names:
        if name.startswith("@"):
            told = subprocess.run(
                ["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True
            )
            yield from calls(line.strip() for line in told.stdout.splitlines()[1:] if not line.strip().startswith("#"))
        elif name:
            yield name


def allowed(unit: Path) -> set[str]:
    """The calls that a unit leaves: the first of its lists allows, the others take away."""
    first, *others = values(unit, "SystemCallFilter")
    left = set(calls(["@default", *first.split()]))
    for each in others:
        left -= set(calls(each.removeprefix("~").split()))
    return left


class _Argument(ctypes.Structure):
    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


def confine(unit: Path) -> None:
    """Confine this process, and all that it starts."""
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_rule_add_array.argtypes = (
        ctypes.c_void_p,
        ctypes.c_uint32,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.POINTER(_Argument),
    )
    library.seccomp_load.argtypes = (ctypes.c_void_p,)
    filter_ = library.seccomp_init(_REFUSE)

    def allow(name: str, *arguments: _Argument) -> None:
        number = library.seccomp_syscall_resolve_name(name.encode())
        given = (_Argument * max(1, len(arguments)))(*arguments)
        if number >= 0 and library.seccomp_rule_add_array(filter_, _ALLOW, number, len(arguments), given):
            raise OSError(f"the filter does not take {name}")

    for name in sorted(allowed(unit) - {"socket"}):
        allow(name)
    (families,) = values(unit, "RestrictAddressFamilies")
    for family in families.split():
        allow("socket", _Argument(arg=0, op=4, a=_ADDRESSES[family]))  # equal
    if library.seccomp_load(filter_):
        raise OSError("the filter cannot be set")


if __name__ == "__main__":
    confine(Path(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
