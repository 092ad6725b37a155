"""A command in a sandbox: Linux name spaces by bubblewrap (`bwrap`), a filter of system calls, and limits.

In it stand the system's programs, read-only; the folders that are lent; and one folder that is the home, the working
folder, and the only place that can be written for long. Nothing else of this machine is there: no other process, no
network, no socket, no variable. docs/sandbox.md says what holds, and what does not.

The kernel keeps each process to its limits. Four times a second, `excess` looks at what they take together, and what
the folder takes. Control groups would be exact, but few machines give them to a program that is not root."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from errno import EACCES, ENAMETOOLONG
from functools import cache
from itertools import islice
from pathlib import Path
from shutil import disk_usage
from typing import Final, Literal

from msgspec import Struct, field

from gateway.runtime import program
from gateway.runtime.clock import Clock
from gateway.runtime.errors import ToolError
from gateway.runtime.inside import marked
from gateway.runtime.structs import replace

WORKSPACE: Final = "/workspace"
FOLDERS: Final = "/folders"
SHOWN: Final = "/skills"
SYSTEM: Final = "/usr"
PROXY: Final = "/run/proxy"
PORTS: Final = (80, 443)
STANDS: Final = ".\n"  # the first line on stderr: the sandbox stands, and what follows is the command's
Network = Literal["none", "listed", "public"]

# A gateway that is killed while the sandbox is set up must leave nothing of it. Process 1 asks the kernel to end with
# its parent, and has a filter of calls after that; who answers STANDS lived until then. (To be able to read it is not
# enough: of a program that is killed, one thread may have ended and another still hold the pipe open.)
_STARTED: Final = """
asked() { while read -r name value; do test "$name$value" = Seccomp:2 && return; done </proc/1/status; return 1; }
until asked; do :; done
echo . >&2 && {answered}exec "$@"
"""
_ANSWERED: Final = "read -r _ && exec </dev/null && "

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
_CODE: Final = (Path(__file__).resolve().parents[2], Path(sys.prefix).resolve(), Path(sys.base_prefix).resolve())
_OF_THE_KERNEL: Final = ("/proc", "/sys", "/dev", "/run", "/var/run")
_PROBE_SECONDS: Final = 10.0
# What is said where no sandbox comes to stand, and what to do about it. docs/sandbox.md tells more.
_REFUSED: Final = "refused"
_CURES: Final = {
    ("bwrap: not found",): "bubblewrap is missing: apt-get install bubblewrap",
    ("prlimit", "execvp"): "prlimit is missing: apt-get install util-linux",
    ("Unknown option",): "bubblewrap is older than 0.8: install a newer one",
    ("mount proc",): "the container covers parts of /proc: start it with --security-opt systempaths=unconfined",
    ("NETLINK",): "Legato cannot use AF_NETLINK: add it to RestrictAddressFamilies in the service",
    ("namespace", "uid map", "RTM_NEWADDR", "not permitted", "denied"): _REFUSED,
}
_APPARMOR: Final = "AppArmor keeps user namespaces from bwrap: give it a profile"
_OFF: Final = "user namespaces are off: sysctl "
_SWITCHES: Final = {
    "kernel/apparmor_restrict_unprivileged_userns": ("1", _APPARMOR),
    "kernel/unprivileged_userns_clone": ("0", f"{_OFF}kernel.unprivileged_userns_clone=1"),
    "user/max_user_namespaces": ("0", f"{_OFF}user.max_user_namespaces=10000"),
}
_MOST_OF_ROOT: Final = 1_000  # processes of all sandboxes of a gateway that runs as root
_KEYS: Final = "/proc/keys"  # their names, of the whole machine
_BLOCK: Final = 512  # bytes; stat(2)
_HIDING: Final = (EACCES, ENAMETOOLONG)
_LEAST_FREE: Final = 200_000_000  # bytes of a disk


class Lent(Struct, frozen=True, kw_only=True):
    """A folder of this machine, and the name under which the sandbox shows it."""

    name: str
    path: Path
    write: bool = False


class Limits(Struct, frozen=True, kw_only=True):
    """What may be used: bytes, numbers, seconds. The kernel keeps each process to `memory`, `file` and `cpu`."""

    memory: int = 2_000_000_000  # of one process, and of all
    processes: int = 200  # with threads
    file: int = 500_000_000
    cpu: int = 600
    folder: int = 500_000_000  # on the disk
    files: int = 20_000  # in the folder
    scratch: int = 200_000_000  # /tmp
    shared: int = 64_000_000  # /dev/shm
    open_files: int = 1_024


class Sandbox(Struct, frozen=True, kw_only=True):
    """`folder` appears at /workspace, each of `lent` at /folders/NAME, each of `shown` at /skills/NAME, which is never
    written. `proxy` is the Unix socket of the forwarding proxy, at /run/proxy: there is no other way out."""

    folder: Path
    lent: Sequence[Lent] = ()
    shown: Sequence[Lent] = ()
    network: Network = "none"
    proxy: Path | None = None
    variables: Sequence[tuple[str, str]] = ()  # of the command, beside PATH, LANG, HOME; others on the machine see them
    hands_on: bool = False  # whether the command has the variables of what starts it, too, which nobody else sees
    programs: Sequence[Path] = ()  # folders that stand where they stand on this machine, and are never written
    limits: Limits = field(default_factory=Limits)


class Reach(Struct, frozen=True, kw_only=True):
    """Where a sandbox may go: to these `hosts`, or `everywhere` on the public internet. An entry is a name, a name
    after `*.` for all names below it, and either with a port after a colon. `setting`: the key that lists them."""

    hosts: Sequence[str] = ()
    everywhere: bool = False
    setting: str = ""

    def includes(self, host: str, port: int) -> bool:
        """Whether a host, in lower case, may be asked at this port."""
        return (self.everywhere and port in PORTS) or any(_fits(host, port, each) for each in self.hosts)


def named(entry: str) -> tuple[str, int | None]:
    """The host of an entry, and its port, if it has one."""
    name, _, port = entry.rpartition(":")
    return (name, int(port)) if name and port.isdecimal() else (entry, None)


def _fits(host: str, port: int, entry: str) -> bool:
    name, only = named(entry)
    if port != only if only else port not in PORTS:
        return False
    return host.endswith(name[1:]) and host != name[1:] if name.startswith("*.") else host == name


def unlendable(folder: Lent, lent: Sequence[Lent], own: Sequence[Path]) -> str:
    """The reason why a folder must not be lent, in words that can follow its name; "" for none. Paths are resolved.
    `own` are the places of the gateway's data: whoever saw them would see all conversations and keys, and whoever wrote
    its code would be the gateway."""
    path = folder.path
    if any(_touch(path, each) for each in (*own, *(_CODE if folder.write else ()))):
        return "overlaps with Legato's own folders: lend another folder"
    if any(map(path.is_relative_to, _OF_THE_KERNEL)):
        return "belongs to the system: lend another folder"
    if any(each.write and each is not folder and _touch(path, each.path) for each in lent):
        return "overlaps with another folder that is lent for writing: lend only one of them"
    return ""


def _touch(one: Path, other: Path) -> bool:
    return one.is_relative_to(other) or other.is_relative_to(one)


async def run(
    sandbox: Sandbox,
    command: Sequence[str],
    *,
    seconds: float,
    clock: Clock,
    hear: Callable[[bytes], None] | None = None,
) -> program.ProgramResult:
    """Run a command in a sandbox to its end, or until it meets a limit. `hear` gets its whole output as it comes.
    Raises ToolError if the sandbox cannot be set up, and OSError if nothing can be started."""
    ended = await program.run(
        argv(sandbox, command, answered=True),
        folder=Path("/"),
        environment={"PATH": _PATH},  # process 1 of the sandbox shows it
        seconds=seconds,
        clock=clock,
        watch=lambda pid: excess(pid, sandbox.folder, sandbox.limits),
        hear=_after_start(hear) if hear else None,
        answer=b"\n",
    )
    output = f"{ended.output}\n"  # which was without its last line's end
    if not output.startswith(STANDS) and not ended.late:
        raise ToolError(f"The sandbox could not start: {_explained(output)}")
    return replace(ended, output=output.removeprefix(STANDS).rstrip())


def _after_start(hear: Callable[[bytes], None]) -> Callable[[bytes], None]:
    """The same, without the line that says that the sandbox is ready."""
    skipped = 0

    def heard(data: bytes) -> None:
        nonlocal skipped
        skipping = min(len(data), len(STANDS) - skipped)
        skipped += skipping
        hear(data[skipping:])

    return heard


def argv(sandbox: Sandbox, command: Sequence[str], *, answered: bool = False) -> list[str]:
    """Return what to start, so that a command runs in a sandbox. The first line on stderr is STANDS. What is started
    ends with the process that starts it, and all in the sandbox with it. `answered`: the command begins when a line
    comes on stdin, which it does not see."""
    started = _STARTED.replace("{answered}", _ANSWERED if answered else "")
    filter_ = _FILES / _FILTERS.get(platform.machine(), "none")
    counted = f'echo $$ >"{group}/cgroup.procs" && ' if (group := _group()) else ""
    opened = f'{counted}exec "$@" 3<"{_quoted(filter_)}"'
    return [
        *("/bin/sh", "-c", opened, "sh", "bwrap", *_arguments(sandbox), "--seccomp", "3", "--"),
        *("prlimit", *_rlimits(sandbox.limits), "--", "/bin/sh", "-c", started, "sh", *command),
    ]


def _arguments(sandbox: Sandbox) -> Iterator[str]:
    limits = sandbox.limits
    yield from (f"--unshare-{each}" for each in _NAMESPACES)
    yield from ("--disable-userns", "--uid", _USER, "--gid", _USER, "--hostname", "sandbox")
    yield from ("--die-with-parent", "--new-session", "--cap-drop", "ALL")
    yield from () if sandbox.hands_on else ("--clearenv",)
    for name, value in (("PATH", _PATH), ("LANG", "C.UTF-8"), ("HOME", WORKSPACE), *sandbox.variables):
        yield from ("--setenv", name, value)
    yield from ("--ro-bind", SYSTEM, SYSTEM, *_system(), "--ro-bind", str(_FILES), _OWN)
    for name in _OWN_ETC:
        yield from ("--symlink", f"{_OWN}/{name}", f"/etc/{name}")
    yield from (
        "--proc",
        "/proc",
        *(("--ro-bind", "/dev/null", _KEYS) if os.path.exists(_KEYS) else ()),
        "--remount-ro",
        "/proc",
        "--dev",
        "/dev",
    )
    yield from ("--size", str(limits.shared), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
    yield from ("--size", str(limits.scratch), "--perms", "1777", "--tmpfs", "/tmp", "--symlink", "../tmp", "/var/tmp")
    yield from ("--bind", str(sandbox.folder), WORKSPACE)
    for each in sandbox.lent:
        yield from ("--bind-try" if each.write else "--ro-bind-try", str(each.path), f"{FOLDERS}/{each.name}")
    for each in sandbox.shown:
        yield from ("--ro-bind-try", str(each.path), f"{SHOWN}/{each.name}")
    for path in sandbox.programs:
        yield from ("--ro-bind", str(path), str(path))
    if sandbox.proxy is not None:
        yield from ("--ro-bind", str(sandbox.proxy), PROXY)
    yield from ("--remount-ro", "/", "--chdir", WORKSPACE)


@cache
def _system() -> Sequence[str]:
    """What is shown of the system besides /usr: links stay links, because they cost nothing."""
    there: list[str] = []
    for path in map(Path, (*_ROOTS, *(f"/etc/{name}" for name in _ETC))):
        if path.is_symlink() and path.parent == _ROOT:
            there += ("--symlink", str(path.readlink()), str(path))
        elif path.exists():
            there += ("--ro-bind", str(path), str(path))
    return there


@cache
def _group() -> Path | None:
    """The control group for the sandboxes of a gateway that runs as root: the kernel limits the number of all users'
    processes but root's. None for another user, and where there may be none."""
    if os.geteuid() != 0:
        return None
    for tree in (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup")):  # of the first and the second version
        if not (tree / "cgroup.procs").exists():
            continue
        for other in tree.glob("legato-*"):
            if not Path("/proc", other.name.removeprefix("legato-")).exists():
                with suppress(OSError):
                    other.rmdir()
        with suppress(OSError):
            group = tree / f"legato-{os.getpid()}"
            group.mkdir(exist_ok=True)
            (group / "pids.max").write_text(str(_MOST_OF_ROOT), "ascii")
            return group
    return None


def _rlimits(limits: Limits) -> Iterator[str]:
    yield f"--data={limits.memory}"  # what is only reserved, as by Node and Java, does not count
    yield f"--nproc={limits.processes}"
    yield f"--fsize={limits.file}"
    yield f"--cpu={limits.cpu}"
    yield f"--nofile={limits.open_files}"
    yield "--core=0"


def _quoted(path: Path) -> str:
    """A path between the double quotes of a shell."""
    return "".join(f"\\{sign}" if sign in '\\"$`' else sign for sign in str(path))


def excess(pid: int, folder: Path, limits: Limits) -> str:
    """The limit that a sandbox is over, in words that can follow "ended, because"; "" for none. `pid` is what was
    started. Takes as long as reading the names in the folder takes."""
    threads = list(islice(_threads(pid), limits.processes + 1))
    if len(threads) > limits.processes:
        return f"it had more than {limits.processes} processes and threads"
    pids = set(threads)
    if sum(map(_memory, pids)) > limits.memory and sum(map(_share, pids)) > limits.memory:
        return f"its processes took more than {limits.memory / 1e9:g} GB of memory"
    try:
        taken, files = _taken(folder, limits.folder, limits.files)
    except OSError as error:
        return f"its files could not be counted ({error.strerror})"
    if taken > limits.folder or files > limits.files:
        return f"the workspace may not grow beyond {limits.folder / 1e6:,.0f} MB or {limits.files:,} files: remove some"
    return "the disk of this machine is nearly full" if disk_usage(folder).free < _LEAST_FREE else ""


def _taken(folder: Path, enough: float, enough_files: float) -> tuple[int, int]:
    """The bytes and the files of a folder, counted until they are more than enough."""
    taken = files = 0
    for entry in _entries(folder):
        files += 1
        with suppress(FileNotFoundError):
            taken += _BLOCK * entry.stat(follow_symlinks=False).st_blocks
        if taken > enough or files > enough_files:
            break
    return taken, files


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Everything in a folder, and in its folders. Raises OSError for one that hides its contents."""
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for entry in found:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError as error:
            if error.errno in _HIDING:
                raise  # other folders are gone meanwhile


def _threads(pid: int) -> Iterator[int]:
    """The process of each thread of a process and of all that it started."""
    waiting = [pid]
    while waiting:
        process = waiting.pop()
        with suppress(OSError):  # it has ended meanwhile
            for task in os.listdir(f"/proc/{process}/task"):
                yield process
                waiting += map(int, Path(f"/proc/{process}/task/{task}/children").read_text("ascii").split())


def _memory(pid: int) -> int:
    """The bytes that a process has for itself or shares with others of its kind; programs and files do not count."""
    return sum(_kilobytes(f"/proc/{pid}/status", "RssAnon:", "RssShmem:")) * 1_024


def _share(pid: int) -> int:
    """The same, with only its share of what several have."""
    return sum(_kilobytes(f"/proc/{pid}/smaps_rollup", "Pss_Anon:", "Pss_Shmem:")) * 1_024


def _kilobytes(file: str, *names: str) -> Iterator[int]:
    with suppress(OSError):
        for line in Path(file).read_text("utf-8", "replace").splitlines():
            if line.startswith(names):
                yield int(line.split()[1])


def on_windows() -> bool:
    """Whether there is no POSIX shell at all."""
    return sys.platform == "win32"


@cache
def why_not() -> str:
    """The reason why there is no sandbox on this machine, and what to do about it; "" where it holds. It is tried once
    in a process, in some twenty milliseconds."""
    if on_windows():
        return "Windows has none, so run Legato in WSL, the Windows Subsystem for Linux"
    if sys.platform != "linux":
        return "only Linux has one, so run Legato in a virtual machine with Linux"
    if platform.machine() not in _FILTERS:
        return f"there is no filter of system calls for the processor {platform.machine()}"
    if os.geteuid() == 0 and _group() is None:
        return "root's processes cannot be limited here: run Legato as a user of its own"
    try:
        tried = subprocess.run(
            argv(Sandbox(folder=Path("/usr")), ["true"]),
            env=marked({"PATH": _PATH}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not start ({error})"
    if tried.returncode == 0 and tried.stderr == STANDS.encode():
        return ""
    return _explained(tried.stderr.decode("utf-8", "replace"))


def _explained(said: str) -> str:
    """What to do about the words of a sandbox that could not be set up."""
    last = said.strip().splitlines()[-1:] or ["it says nothing"]
    cure = next((cure for words, cure in _CURES.items() if any(each in said for each in words)), "")
    if cure == _REFUSED:
        switched = (cure for key, (value, cure) in _SWITCHES.items() if _setting(key) == value)
        cure = next(switched, "a container or a service keeps user namespaces from Legato")
    return f"{cure or 'bubblewrap does not work here'} ({last[0].removeprefix('bwrap: ')})"


def _setting(key: str) -> str:
    with suppress(OSError):
        return Path("/proc/sys", key).read_text("ascii").strip()
    return ""
