"""Whether a process was started by something that a gateway runs: a command of the model, an MCP server, a transcriber.

Such a process must not give Legato's own commands, which change who may do what. Everything that a gateway starts
carries a mark in its environment, and a gateway has a name of its own in the list of processes. A process that takes
the mark off still has a gateway, or a marked process, among its ancestors. This holds up no program that hides from its
ancestors, nor one that writes Legato's files by itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from gateway.runtime import posix

MARK: Final = "LEGATO_CHILD"
_NAME: Final = b"legato gateway"  # the kernel keeps 15 bytes
_PROCESSES: Final = Path("/proc")  # proc(5); elsewhere than on Linux the mark alone says it
_CONNECTIONS: Final = ("net/tcp", "net/tcp6")
_ESTABLISHED: Final = "01"


def marked(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process that a gateway starts."""
    return {**environment, MARK: "1"}


def name_gateway() -> None:
    """Give this process the name of a gateway; what it starts loses the name."""
    with suppress(OSError):
        (_PROCESSES / "self/comm").write_bytes(_NAME)


def is_inside() -> bool:
    """Whether this process was started by something that a gateway runs."""
    return MARK in os.environ or _comes_from_inside(os.getppid())


def comes_from_inside(port: int, to_port: int) -> bool:
    """The same of the process that has a connection on this machine from one port to the other. Another user's is not
    inside: what a gateway starts is its own user's. One that cannot be found may be."""
    if not _PROCESSES.joinpath(_CONNECTIONS[0]).exists():
        return False
    user, socket = _connection(port, to_port)
    if user != posix.user():
        return user is None
    holders = [pid for pid in _processes() if socket in _open_files(pid)]
    return not holders or any(map(_comes_from_inside, holders))


def _comes_from_inside(pid: int) -> bool:
    while pid > 0:
        process = _PROCESSES / str(pid)
        try:
            if (process / "comm").read_bytes().strip() == _NAME:
                return True
            facts = (process / "stat").read_bytes().rpartition(b")")[2].split()  # a program's name may hold anything
        except OSError:
            return False
        with suppress(OSError):  # another user's
            if any(each.startswith(f"{MARK}=".encode()) for each in (process / "environ").read_bytes().split(b"\0")):
                return True
        pid = int(facts[1])
    return False


def _connection(port: int, to_port: int) -> tuple[int | None, str]:
    """The user at a connection's end on this machine, and its socket as a process names it; None if there is none."""
    for table in _CONNECTIONS:
        with suppress(OSError):
            for line in (_PROCESSES / table).read_text("ascii").splitlines()[1:]:
                facts = line.split()
                ends = [int(address.rpartition(":")[2], 16) for address in facts[1:3]]
                if ends == [port, to_port] and facts[3] == _ESTABLISHED:
                    return int(facts[7]), f"socket:[{facts[9]}]"
    return None, ""


def _processes() -> Iterator[int]:
    return (int(each.name) for each in _PROCESSES.iterdir() if each.name.isdigit())


def _open_files(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for descriptor in (_PROCESSES / str(pid) / "fd").iterdir():
            with suppress(OSError):
                yield os.readlink(descriptor)
