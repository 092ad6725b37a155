"""Reading and writing file descriptors without ever blocking the event loop.

Each side has one thread that waits with `select` for its descriptor *or* a wake-up, so the
thread works alike for pipes, files, terminals and /dev/null, and ends promptly when told to. asyncio's own
pipe transports would make the descriptor non-blocking, for every process that shares it, and
refuse regular files. On Windows `select` takes sockets only: there the thread waits in the read or the write itself.
The descriptors stay their owner's: nothing here closes them.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import IO, Any, Final

from gateway.runtime.errors import Disconnected

try:
    import termios
except ImportError:  # Windows
    termios = None  # type: ignore[assignment]

SELECTS = os.name != "nt"
READ_SIZE: Final = 64 * 1024  # bytes: what a Linux pipe holds
# Bytes (POSIX's PIPE_BUF on Linux): a pipe that `select` calls writable takes this much without blocking.
WRITE_SIZE: Final = 4096


Pipe = int | IO[Any]
"""A descriptor, or an open file, of which only the descriptor is used: its own buffers must be empty."""


class Interrupted(Exception):
    """The wait for a descriptor was ended from outside."""


class _Waiter:
    """One thread for one descriptor, and the means to end its waiting."""

    def __init__(self, source: Pipe, name: str) -> None:
        self.fd = source if isinstance(source, int) else source.fileno()
        self.thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._wake_end, self._ring_end = os.pipe()
        self._rung = False
        self.closed = False

    def wait(self, *, readable: bool) -> None:
        """Return when the descriptor is ready; raises Interrupted once `ring` was called."""
        if not SELECTS:
            if self._rung:
                raise Interrupted
            return
        reading = [self._wake_end, self.fd] if readable else [self._wake_end]
        ready, _, _ = select.select(reading, [] if readable else [self.fd], [])
        if self._wake_end in ready:
            raise Interrupted

    def ring(self) -> None:
        """End the present wait and all later ones."""
        if not self._rung:
            self._rung = True
            os.write(self._ring_end, b"!")

    def close(self) -> None:
        """End the thread; the wake-up's descriptors go once it no longer waits on them."""
        if not self.closed:
            self.closed = True
            self.ring()
            self.thread.submit(self._release)
            self.thread.shutdown(wait=False)

    def _release(self) -> None:
        os.close(self._wake_end)
        os.close(self._ring_end)


class InputReader:
    """Reads a descriptor."""

    def __init__(self, source: Pipe) -> None:
        self._waiter = _Waiter(source, "console-in")

    async def read(self) -> bytes:
        """The next bytes, at least one; b"" at the end of the input.

        Raises Interrupted after `interrupt`, and Disconnected if the input cannot be read at all.
        """
        if self._waiter.closed:
            raise Interrupted
        try:
            return await asyncio.get_running_loop().run_in_executor(self._waiter.thread, self._read)
        except OSError as error:
            raise Disconnected(f"The standard input cannot be read ({error.strerror}).") from error

    def _read(self) -> bytes:
        while True:
            self._waiter.wait(readable=True)
            try:
                return os.read(self._waiter.fd, READ_SIZE)
            except BlockingIOError:
                continue  # another process made the shared descriptor non-blocking
            except OSError as error:
                if error.errno == errno.EIO:
                    return b""  # a terminal that hung up
                raise

    @property
    def is_terminal(self) -> bool:
        """Whether a person types the input."""
        return os.isatty(self._waiter.fd)

    def forget_typed(self) -> None:
        """Throw away what was typed at a terminal and not read."""
        if termios is None:
            return
        with suppress(termios.error):  # a terminal that hung up
            termios.tcflush(self._waiter.fd, termios.TCIFLUSH)

    def interrupt(self) -> None:
        """Stop reading, for good: the present `read` and all later ones raise Interrupted."""
        self._waiter.ring()

    def close(self) -> None:
        """Stop reading and end the thread. Idempotent."""
        self._waiter.close()


class OutputWriter:
    """Writes whole lines, in the order of the calls, however slow the reader is."""

    def __init__(self, target: Pipe) -> None:
        self._waiter = _Waiter(target, "console-out")
        self._torn = b""  # what is left of a line that failed half-way: it must end before the next begins
        self.gone = False  # whether the reader has left

    async def write(self, data: bytes) -> None:
        """Return when the last byte has left this process.

        Raises Disconnected if the reader has gone (`gone` is then true), the disk is full, or the
        writer was closed.
        """
        if self.gone or self._waiter.closed:
            raise Disconnected("The program that read the output has ended.")
        try:
            await asyncio.get_running_loop().run_in_executor(self._waiter.thread, self._write, data)
        except (BrokenPipeError, Interrupted) as error:
            self.gone = True
            raise Disconnected("The program that read the output has ended.") from error
        except OSError as error:
            raise Disconnected(f"The output cannot be written ({error.strerror}).") from error

    def _write(self, data: bytes) -> None:
        self._torn = self._write_all(memoryview(self._torn))
        self._torn = self._write_all(memoryview(data))

    def _write_all(self, data: memoryview) -> bytes:
        begun = False
        while data:
            try:
                self._waiter.wait(readable=False)
                data = data[os.write(self._waiter.fd, data[:WRITE_SIZE]) :]
                begun = True
            except BlockingIOError:
                continue
            except OSError:
                if begun:
                    self._torn = bytes(data)
                raise
        return b""

    def close(self) -> None:
        """Give up what is not written yet and end the thread. Idempotent."""
        self._waiter.close()
