"""The way out of a sandbox that has no network: its port 3128 leads to the proxy's socket.

    python -I -S -c THIS SOCKET COMMAND ARGUMENT…

Programs know proxies by a port alone. So this listens on the sandbox's own loopback, leaves a process behind that
carries bytes to SOCKET and back, and becomes the command. The sandbox ends that process together with the command.

It runs inside the sandbox, and stands alone: it needs a Python, and no package.
"""

import os
import socket
import sys
from contextlib import suppress
from threading import Thread, stack_size

PORT = 3128
_WAITING = 64  # connections that are not taken up yet
_PIECE = 65_536
_NOT_FOUND = 127  # the exit status of a shell that finds no such command
_STACK = 262_144  # bytes for each of two threads per connection


def _carry(source: socket.socket, target: socket.socket) -> None:
    """Carry bytes until `source` says no more. A connection that breaks ends both."""
    try:
        while piece := source.recv(_PIECE):
            target.sendall(piece)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)


def _visit(near: socket.socket, path: str) -> None:
    with near, socket.socket(socket.AF_UNIX) as far, suppress(OSError, RuntimeError):  # RuntimeError: no more threads
        far.connect(path)
        answers = Thread(target=_carry, args=(far, near), daemon=True)
        answers.start()
        _carry(near, far)
        answers.join()


def _serve(listener: socket.socket, path: str) -> None:
    stack_size(_STACK)
    while True:
        with suppress(OSError, RuntimeError):
            near, _ = listener.accept()
            Thread(target=_visit, args=(near, path), daemon=True).start()


def begin(path: str) -> None:
    """Listen, and leave a process behind that serves. It is no child of the command, which may wait for all of its
    own, and holds none of the command's streams."""
    with socket.create_server(("127.0.0.1", PORT), backlog=_WAITING) as listener:
        child = os.fork()
        if child == 0:
            if os.fork() == 0:
                os.setsid()
                nowhere = os.open(os.devnull, os.O_RDWR)
                for stream in (0, 1, 2):
                    os.dup2(nowhere, stream)
                _serve(listener, path)
            os._exit(0)
    os.waitpid(child, 0)


if __name__ == "__main__":
    begin(sys.argv[1])
    try:
        os.execvp(sys.argv[2], sys.argv[2:])
    except OSError as error:
        os.write(2, f"{sys.argv[2]} cannot be started: {(error.strerror or 'unknown reason').lower()}\n".encode())
        sys.exit(_NOT_FOUND)
