"""Processes by the dozen: one interpreter imports everything once and forks a program for each order.

A fork costs 10 ms where a fresh interpreter costs a second; what a signal does to it, and what it
leaves behind, is the same. `python -m tests.chaos.forks FD` is the parent of all; `Forks` is how the
laboratory talks to it. Any number of programs may run at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import select
import signal
import socket
import subprocess
import sys
import traceback
from collections import deque
from pathlib import Path
from typing import Any, Final

from tests.chaos import node

ROOT: Final = Path(__file__).parents[2]


class Child:
    """A program that was started: its process id, and how it ended (`-9`: killed) once it has."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self.stopped = asyncio.Event()

    def send(self, number: int) -> None:
        """Send it a signal, if it is still there."""
        if not self.ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)


class Forks:
    """The laboratory's end. `start` gives a `Child`, whose fate is told as it comes."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        with theirs:
            self._parent = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.forks", str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self._asked: deque[asyncio.Future[Child]] = deque()
        self._children: dict[int, Child] = {}
        self._writer: asyncio.StreamWriter | None = None
        self._listening: asyncio.Task[None] | None = None

    async def start(self, config: Path) -> Child:
        """Fork a node on this configuration."""
        if self._writer is None:
            reader, self._writer = await asyncio.open_connection(sock=self._ours)
            self._listening = asyncio.create_task(self._listen(reader))
        self._asked.append(asyncio.get_running_loop().create_future())
        wanted = self._asked[-1]
        self._writer.write(f"{config}\n".encode())
        return await wanted

    async def aclose(self) -> None:
        """End the parent of all, and with it whatever still runs."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait([self._listening])
        if self._writer is not None:
            self._writer.close()
        else:
            self._ours.close()
        await asyncio.to_thread(self._parent.wait)

    async def _listen(self, reader: asyncio.StreamReader) -> None:
        while line := await reader.readline():
            what, pid, *rest = line.decode().split()
            if what == "started":
                child = self._children[int(pid)] = Child(int(pid))
                asked = self._asked.popleft()
                if asked.cancelled():
                    child.send(signal.SIGKILL)  # nobody waits for it any more
                else:
                    asked.set_result(child)
            elif what == "stopped":
                self._children[int(pid)].stopped.set()
            else:
                self._children.pop(int(pid)).ended.set_result(int(rest[0]))


# -- the parent of all ---------------------------------------------------------------------------


def _serve(orders: socket.socket) -> None:
    wake, ring = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(ring, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    children: set[int] = set()
    unread = b""
    while True:
        ready, _, _ = select.select([orders, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
            _tell_fates(orders, children)
        if orders in ready:
            data = orders.recv(1 << 16)
            if not data:
                break
            *lines, unread = (unread + data).split(b"\n")
            for line in lines:
                pid = os.fork()
                if not pid:
                    signal.set_wakeup_fd(-1)
                    for descriptor in (orders.detach(), wake, ring):
                        os.close(descriptor)
                    _become(line.decode())
                children.add(pid)
                orders.sendall(f"started {pid}\n".encode())
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _tell_fates(orders: socket.socket, children: set[int]) -> None:
    for pid in list(children):
        while True:
            found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
            if not found:
                break
            if os.WIFSTOPPED(status):
                orders.sendall(f"stopped {pid}\n".encode())
                continue
            children.discard(pid)
            orders.sendall(f"ended {pid} {os.waitstatus_to_exitcode(status)}\n".encode())
            break


def _become(config: str) -> None:
    """In the forked process: be the program, and leave without coming back."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(Path(config).with_name("log"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    code: Any = 70
    try:
        code = node.main(["--config", config])
    except BaseException:
        traceback.print_exc()  # leaving as below would hide it
        raise
    finally:
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    """Warm up, then serve."""
    # The vocabulary takes 0.25 s to read: read once here, it is there in every fork.
    node.tokens._load = functools.cache(node.tokens._load)  # type: ignore[assignment]
    node.TokenCounter().text("warm")
    _serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    main()
