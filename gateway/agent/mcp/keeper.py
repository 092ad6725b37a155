"""The parent of one server process, which outlives neither the gateway nor the server.

    python -I -S keeper.py PIPE COMMAND ARGUMENT…

The command gets this process's standard streams and a session of its own. PIPE is the end of a pipe whose other end
the gateway holds: when that closes, also because the gateway was killed, everything that the command started is
ended. When the command ends, whatever it left behind is ended, too. On Linux this process adopts the orphans of its
descendants (prctl(2), PR_SET_CHILD_SUBREAPER), so no process escapes by starting a session of its own.

It stands alone, without a module of Legato or a package: it starts in 20 milliseconds, and takes 9 MB.
"""

import ctypes
import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress

_GRACE = 0.5  # seconds from SIGTERM to SIGKILL
_PAUSE = 0.01  # seconds between two looks at the remaining processes
_MANY = 100  # processes
_MOST_ROUNDS = 1_000  # of killing
_SUBREAPER, _DEATH_SIGNAL = 36, 1  # prctl(2)
NOT_FOUND = 127  # the exit status of a shell that finds no such command


def _ask_kernel(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _start(command: list[str], pipe: int) -> int:
    keeper = os.getpid()
    if (child := os.fork()) != 0:
        return child
    try:
        os.close(pipe)
        os.setsid()
        _ask_kernel(_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() == keeper:  # else it died before it could be heard of
            for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {(error.strerror or 'unknown reason').lower()}\n".encode())
    finally:
        os._exit(NOT_FOUND)


def _reap(child: int) -> tuple[int | None, bool]:
    """Let go of everything that has ended. Return how the child ended, if it did, and whether anything is left."""
    ended = None
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return ended, True
            if pid == child:
                ended = os.waitstatus_to_exitcode(status)
    except ChildProcessError:
        return ended, False


def _descendants() -> Iterator[int]:
    """Every process below this one, as /proc lists them: by their numbers, so parents come before their children. The
    few that do not are found when this is asked again."""
    below = {os.getpid()}
    for name in os.listdir("/proc") if sys.platform == "linux" else ():
        if name.isdigit():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
                state, parent = stat.read().rpartition(b")")[2].split()[:2]  # a program's name may hold anything
                if int(parent) in below and state not in (b"Z", b"X"):
                    below.add(int(name))
                    yield int(name)


def _signal(child: int, number: int) -> int:
    """Send everything below this process a signal; how many there were."""
    if sys.platform != "linux":  # where processes are not listed; the number may be another group's by now
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, number)
    count = 0
    for pid in _descendants():
        count += 1
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return count


def _end(child: int, grace: float) -> None:
    """End everything below this process: kindly, and after `grace` seconds by force. A process that multiplies gets
    no grace."""
    if grace and _signal(child, signal.SIGTERM) < _MANY:
        for _ in range(int(grace / _PAUSE)):
            if not _reap(child)[1]:
                return
            if sum(1 for _ in _descendants()) > _MANY:
                break
            select.select([], [], [], _PAUSE)
    for _ in range(_MOST_ROUNDS):  # they may start others meanwhile
        killed = _signal(child, signal.SIGKILL)
        if not _reap(child)[1]:
            return
        if not killed:
            select.select([], [], [], _PAUSE)


def keep(pipe: int, command: list[str]) -> int:
    """Run the command until it ends or the pipe closes. Return its exit status, as a shell would."""
    _ask_kernel(_SUBREAPER, 1)
    heard, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    child = _start(command, pipe)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # the reader of the command's output is to see its end
        os.dup2(nowhere, stream)
    while True:
        ready, _, _ = select.select([heard, pipe], [], [])
        ended, _ = _reap(child)
        if ended is not None:
            _end(child, 0.0)
            return ended if ended >= 0 else 128 - ended
        signals = os.read(heard, 4096) if heard in ready else b""
        if pipe in ready or any(number != signal.SIGCHLD for number in signals):
            _end(child, _GRACE)
            return 128 + signal.SIGTERM


if __name__ == "__main__":
    sys.exit(keep(int(sys.argv[1]), sys.argv[2:]))
