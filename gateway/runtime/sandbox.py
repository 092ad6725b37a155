"""A command in a sandbox: Linux name spaces by bubblewrap (`bwrap`), a filter of system calls, and limits.

In it stand the system's programs, read-only; the folders that are lent; and one folder that is the home, the working
folder, and the only place that can be written for long. Nothing else of this machine is there: no other process, no
network, no socket, no variable. `docs/sandbox.md` says what each line is for.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct, field

from gateway.runtime.inside import marked

WORKSPACE: Final = "/workspace"
FOLDERS: Final = "/folders"
SHOWN: Final = "/skills"
PROXY: Final = "/run/proxy"
STANDS: Final = b"\n"  # the first byte on stderr: the sandbox stands, and what follows is the command's
Network = Literal["none", "listed", "public"]

_FILES: Final = Path(__file__).with_name("sandbox_files")
_FILTERS: Final = {"x86_64": "x86_64.bpf", "aarch64": "aarch64.bpf"}
_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
_USER: Final = "1000"  # inside; outside, it is the gateway's
_ROOT: Final = Path("/")
_ROOTS: Final = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")  # links into /usr, or folders of their own
# What programs look for in /etc. The list is short: a gateway that runs as root could read the secrets of all others,
# and each line costs half a millisecond.
_ETC: Final = ("alternatives", "ld.so.cache", "localtime", "ssl/certs", "ssl/openssl.cnf", "pki", "mime.types", "fonts")
_OWN: Final = "/run/etc"
_OWN_ETC: Final = ("passwd", "group", "hosts", "nsswitch.conf")
_NAMESPACES: Final = ("user", "pid", "net", "ipc", "uts", "cgroup-try")
_PROBE_SECONDS: Final = 10.0


class Lent(Struct, frozen=True, kw_only=True):
    """A folder of this machine, by the name under which it stands in the sandbox."""

    name: str
    path: Path
    write: bool = False


class Limits(Struct, frozen=True, kw_only=True):
    """What may be used: bytes, numbers, seconds. The kernel keeps each process to `memory`, `file` and `cpu`; of all
    together, and of the folder, whoever runs the command asks `excess` from time to time."""

    memory: int = 2_000_000_000
    processes: int = 200  # with threads
    file: int = 500_000_000
    cpu: int = 600
    folder: int = 500_000_000
    files: int = 20_000
    scratch: int = 200_000_000  # /tmp
    shared: int = 64_000_000  # /dev/shm
    open_files: int = 1_024


class Sandbox(Struct, frozen=True, kw_only=True):
    """`folder` stands at /workspace, each of `lent` at /folders/NAME, each of `shown` at /skills/NAME and is never
    written. `proxy` is the Unix socket of the forwarding proxy, at /run/proxy: there is no other way out."""

    folder: Path
    lent: Sequence[Lent] = ()
    shown: Sequence[Lent] = ()
    network: Network = "none"
    proxy: Path | None = None
    variables: Sequence[tuple[str, str]] = ()  # of the command, beside PATH, LANG, HOME; others on the machine see them
    limits: Limits = field(default_factory=Limits)


def argv(sandbox: Sandbox, command: Sequence[str]) -> list[str]:
    """Return what to start, so that a command runs in a sandbox. The first byte on stderr is STANDS. What is started
    ends with the process that starts it, and all in the sandbox with it."""
    filter_ = _FILES / _FILTERS.get(platform.machine(), "none")
    opened = f'exec "$@" 3<"{_quoted(filter_)}"'
    # A gateway that was killed while the sandbox was set up reads nothing more: then nothing is run.
    started = 'echo >&2 && exec "$@"'
    return [
        *("/bin/sh", "-c", opened, "sh", "bwrap", *_arguments(sandbox), "--seccomp", "3", "--"),
        *("prlimit", *_rlimits(sandbox.limits), "--", "/bin/sh", "-c", started, "sh", *command),
    ]


def _arguments(sandbox: Sandbox) -> Iterator[str]:
    limits = sandbox.limits
    yield from (f"--unshare-{each}" for each in _NAMESPACES)
    yield from ("--disable-userns", "--uid", _USER, "--gid", _USER, "--hostname", "sandbox")
    yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv")
    for name, value in (("PATH", _PATH), ("LANG", "C.UTF-8"), ("HOME", WORKSPACE), *sandbox.variables):
        yield from ("--setenv", name, value)
    yield from ("--ro-bind", "/usr", "/usr", *_system(), "--ro-bind", str(_FILES), _OWN)
    for name in _OWN_ETC:
        yield from ("--symlink", f"{_OWN}/{name}", f"/etc/{name}")
    yield from ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")
    yield from ("--size", str(limits.shared), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
    yield from ("--size", str(limits.scratch), "--perms", "1777", "--tmpfs", "/tmp", "--symlink", "../tmp", "/var/tmp")
    yield from ("--bind", str(sandbox.folder), WORKSPACE)
    for each in sandbox.lent:
        yield from ("--bind" if each.write else "--ro-bind", str(each.path), f"{FOLDERS}/{each.name}")
    for each in sandbox.shown:
        yield from ("--ro-bind", str(each.path), f"{SHOWN}/{each.name}")
    if sandbox.proxy is not None:
        yield from ("--ro-bind", str(sandbox.proxy), PROXY)
    yield from ("--remount-ro", "/", "--chdir", WORKSPACE)


@cache
def _system() -> Sequence[str]:
    """What there is of the system beside /usr: links stay links, because they cost nothing."""
    there: list[str] = []
    for path in map(Path, (*_ROOTS, *(f"/etc/{name}" for name in _ETC))):
        if path.is_symlink() and path.parent == _ROOT:
            there += ("--symlink", str(path.readlink()), str(path))
        elif path.exists():
            there += ("--ro-bind", str(path), str(path))
    return there


def _rlimits(limits: Limits) -> Iterator[str]:
    yield f"--as={limits.memory}"
    yield f"--nproc={limits.processes}"
    yield f"--fsize={limits.file}"
    yield f"--cpu={limits.cpu}"
    yield f"--nofile={limits.open_files}"
    yield "--core=0"


def _quoted(path: Path) -> str:
    """A path between the double quotes of a shell."""
    return "".join(f"\\{sign}" if sign in '\\"$`' else sign for sign in str(path))


@cache
def why_not() -> str:
    """The reason why there is no sandbox on this machine, and what to do about it; "" where it holds. It is tried once
    in a process, in some twenty milliseconds."""
    if sys.platform != "linux":
        return "there is a sandbox on Linux alone: run Legato in a virtual machine or a container that has one"
    if platform.machine() not in _FILTERS:
        return f"there is no filter of system calls for the processor {platform.machine()}"
    try:
        tried = subprocess.run(
            argv(Sandbox(folder=Path("/usr")), ["true"]),
            env=marked({"PATH": os.environ.get("PATH", os.defpath)}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it does not start ({error})"
    if tried.returncode == 0 and tried.stderr == STANDS:
        return ""
    return _explained(tried.stderr.decode("utf-8", "replace"))


def _explained(said: str) -> str:
    """What to do about the words of a sandbox that did not come to stand."""
    last = said.strip().splitlines()[-1:] or ["it says nothing"]
    return last[0]
