"""Processes by the dozen: one interpreter imports everything once and forks a program for each order.

`await forks().start("gateway", "chat", "--json", …)` is `python -m gateway chat --json`, for 30 ms where a fresh
interpreter takes a second and a half; what a signal does to it, and what it leaves behind, is the same. Any number
of programs may run at a time, and all processes of a test run share their parent, `python -m tests.support.forks FD`.
It hears orders at an address, and ends with the process that started it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import typing
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

import typer.main

ROOT: Final = Path(__file__).resolve().parents[2]
LONGEST_LINE: Final = 32 * 1024 * 1024  # bytes; replies may be long
_ADDRESS: Final = "FORKS_OF_TESTS"
BEGIN: Final = "PROGRAMS_OF_TESTS_BEGIN"  # "module:function:argument", called first, with the id of the test


class Child(asyncio.Protocol):
    """A program that was started: its process id, and how it ended (`-9`: killed) once it has."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.started: asyncio.Future[int] = loop.create_future()
        self.ended: asyncio.Future[int] = loop.create_future()
        self.stopped = asyncio.Event()
        self._unread = b""
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The parent of all is there."""
        self._transport = transport

    @property
    def pid(self) -> int:
        """Return the process id."""
        return self.started.result()

    def send(self, number: int) -> None:
        """Send it a signal, if it is still there."""
        if not self.ended.done():
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def data_received(self, data: bytes) -> None:
        """Note the fate of the process as it comes."""
        *lines, self._unread = (self._unread + data).split(b"\n")
        for what, number in (line.decode().split() for line in lines):
            if what == "stopped":
                self.stopped.set()
            else:
                {"started": self.started, "ended": self.ended}[what].set_result(int(number))
        if self.ended.done() and self._transport is not None:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will be told."""
        for future in (self.started, self.ended):
            if not future.done():
                future.set_exception(ConnectionError("the parent of all programs has died"))


class Process:
    """A program on three pipes, with the names of `asyncio.subprocess.Process`."""

    def __init__(
        self, child: Child, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader, stderr: asyncio.StreamReader
    ) -> None:
        self.pid = child.pid
        self.stdin, self.stdout, self.stderr = stdin, stdout, stderr
        self._child = child

    @property
    def returncode(self) -> int | None:
        """Return the exit status; None while the process runs."""
        return self._child.ended.result() if self._child.ended.done() else None

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        self._child.send(number)

    def kill(self) -> None:
        """SIGKILL."""
        self._child.send(signal.SIGKILL)

    async def wait(self) -> int:
        """Wait for the end, and return the exit status."""
        return await asyncio.shield(self._child.ended)

    async def communicate(self, given: bytes = b"") -> tuple[bytes, bytes]:
        """Write, close the input and read to the end."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.stdin.write(given)
            await self.stdin.drain()
        self.stdin.close()
        out, err = await asyncio.gather(self.stdout.read(), self.stderr.read())
        await self.wait()
        return out, err


class Parent:
    """The parent of all programs, which imports everything when the first order comes."""

    def __init__(self) -> None:
        folder = tempfile.mkdtemp(dir="/tmp")  # an address has 104 bytes; TMPDIR may take more
        self.address = f"{folder}/orders"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as orders:
            orders.bind(self.address)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.forks", str(orders.fileno())],
                cwd=ROOT,
                pass_fds=[orders.fileno()],
                stdin=subprocess.PIPE,
            )

    def close(self) -> None:
        """End it, and with it whatever still runs."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Forks:
    """This process's way to the parent of all, which hears orders at `address`."""

    def __init__(self, address: str) -> None:
        self._orders = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._orders.connect(address)

    async def start(
        self,
        module: str,
        *arguments: str,
        descriptors: Sequence[int],
        cwd: Path | None = None,
        environment: Mapping[str, str] | None = None,
        leads: bool = False,
        waits: bool = False,
    ) -> Child:
        """`python -m module arguments` on three descriptors. `leads`: a session of its own; `waits`: SIGTERM is
        ignored until the program listens to it."""
        order = {
            "module": module,
            "arguments": arguments,
            "cwd": str(cwd or ROOT),
            "environment": dict(os.environ if environment is None else environment),
            "leads": leads,
            "waits": waits,
            "begin": os.environ.get(BEGIN, ""),
            "test": os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0],
        }
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._orders, [b"."], [theirs.fileno()])
        socket.send_fds(ours, [json.dumps(order).encode()], list(descriptors))
        ours.shutdown(socket.SHUT_WR)
        _, child = await asyncio.get_running_loop().create_connection(Child, sock=ours)
        await child.started
        return child

    async def logged(self, module: str, *arguments: str, log: Path, **how: Any) -> Child:
        """The same without input; its output and its errors go to the end of `log`."""
        nothing = os.open(os.devnull, os.O_RDONLY)
        words = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            return await self.start(module, *arguments, descriptors=(nothing, words, words), **how)
        finally:
            os.close(nothing)
            os.close(words)

    async def program(self, module: str, *arguments: str, **how: Any) -> Process:
        """The same on three pipes."""
        (child_in, feed), (output, child_out), (errors, child_err) = os.pipe(), os.pipe(), os.pipe()
        theirs = (child_in, child_out, child_err)
        try:
            child = await self.start(module, *arguments, descriptors=theirs, **how)
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        return Process(child, await _writer(feed), await _reader(output), await _reader(errors))

    def close(self) -> None:
        """Order nothing more."""
        self._orders.close()


@functools.cache
def forks() -> Forks:
    """The one that all tests of this process share."""
    share()
    made = Forks(os.environ[_ADDRESS])
    atexit.register(made.close)
    return made


def share() -> None:
    """From here on this process has a parent of programs, and so has every process that it starts."""
    if _ADDRESS not in os.environ:
        parent = Parent()
        os.environ[_ADDRESS] = parent.address
        atexit.register(parent.close)


async def _reader(descriptor: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    return reader


async def _writer(descriptor: int) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    made = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, os.fdopen(descriptor, "wb", 0))
    return asyncio.StreamWriter(*made, None, loop)


# -- the parent of all ---------------------------------------------------------------------------


def _serve(orders: socket.socket) -> dict[str, Any] | None:
    """Fork for every order; returns it in the forked process, and None in the parent once standard input has ended."""
    wake, ring = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(ring, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # in every fork, until it is itself
    signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
    children: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([orders, wake, sys.stdin], [], [])
        if wake in ready:
            os.read(wake, 4096)
            _tell_fates(children)
        if sys.stdin in ready:
            break
        if orders in ready:
            _, given, _, _ = socket.recv_fds(orders, 1, 1)
            told = socket.socket(fileno=given[0])
            order, descriptors = _read(told)
            if not order:
                told.close()
                continue
            _warm(order["module"])
            pid = os.fork()
            if not pid:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGINT, signal.default_int_handler)
                _take(descriptors)
                return order
            for descriptor in descriptors:
                os.close(descriptor)
            children[pid] = told
            _tell(told, f"started {pid}")
    for pid in children:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return None


def _read(told: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """An order and its descriptors; nothing if the process that orders has died before it could say what."""
    data, descriptors, _, _ = socket.recv_fds(told, 1 << 16, 3)
    while more := told.recv(1 << 16):
        data += more
    return json.loads(data or b"{}"), list(descriptors)


def _tell(told: socket.socket, what: str) -> None:
    with contextlib.suppress(OSError):  # nobody listens any more
        told.sendall(f"{what}\n".encode())


def _tell_fates(children: dict[int, socket.socket]) -> None:
    for pid in list(children):
        while True:
            found, status = os.waitpid(pid, os.WNOHANG | os.WUNTRACED)
            if not found:
                break
            if os.WIFSTOPPED(status):
                _tell(children[pid], f"stopped {pid}")
                continue
            with children.pop(pid) as told:
                _tell(told, f"ended {os.waitstatus_to_exitcode(status)}")
            break


def _warm(module: str) -> None:
    """Import a program before the fork, so that the next one has it."""
    if module not in sys.modules:
        importlib.import_module(module)
        _freeze()


def _freeze() -> None:
    """A collection would write to every page that the forks share."""
    gc.collect()
    gc.freeze()


def _take(descriptors: Sequence[int]) -> None:
    """In the forked process: these are the standard ones, and there are no others."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def _become(order: Mapping[str, Any]) -> NoReturn:
    """In the forked process: be the program, and end as an interpreter does, but for the half second in which it
    takes everything apart that is shared with the parent."""
    code: int | None = 0
    try:
        _run(order)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int | None) else 1
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # nobody reads any more
            stream.flush()
    os._exit(code or 0)


def _run(order: Mapping[str, Any]) -> None:
    if order["begin"]:
        module, function, argument = order["begin"].split(":", 2)
        getattr(importlib.import_module(module), function)(argument, order["test"])
    if order["leads"]:
        os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if not order["waits"]:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["cwd"])
    _open_streams()
    sys.argv = ["", *order["arguments"]]
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if added := [path for path in paths if path and path not in sys.path]:
        sys.path[:0] = added
        from gateway.app import plugins

        for found in (plugins.platforms, plugins.providers, plugins.all_commands):
            found.cache_clear()  # the parent knows those on its own path
    sys.modules.pop(order["module"] if "." in order["module"] else "", None)  # it is to be the main module
    runpy.run_module(order["module"], run_name="__main__", alter_sys=True)


def _open_streams() -> None:
    """A new interpreter would look what they are."""
    asked, _, _ = os.environ.get("PYTHONIOENCODING", "").partition(":")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        stream = open(number, "w" if number else "r", encoding=asked or old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
        stream.reconfigure(line_buffering=stream.line_buffering or number == 2)
        setattr(sys, name, stream)


def _warm_everything() -> None:
    """All modules of the product, and what each program would make anew: the vocabulary (0.25 s), the prices of models,
    the certificates, the names of plug-ins, the validators of settings and the commands of the program."""
    gc.disable()  # next to nothing of it is garbage, and looking takes a third of the time
    for package in ("gateway", "adapters"):
        found = importlib.import_module(package)
        for each in pkgutil.walk_packages(found.__path__, f"{package}."):
            if not each.name.endswith("__main__"):
                importlib.import_module(each.name)
    from gateway.app.config.loading import load_config
    from gateway.cli.main import program
    from gateway.providers.catalog import PriceTable
    from gateway.runtime import connections, plugins, tokens

    tokens.TokenCounter().text("warm")
    tokens.TokenCounter(roughly=1).text("warm")
    PriceTable({}).context_window("warm")
    connections.trusting()
    plugins.installed("legato.providers")
    load_config(None, {f"LEGATO__MODEL__{name}": "openai" for name in ("PROVIDER", "NAME", "API_KEY")})
    if hasattr(typing, "_get_protocol_attrs"):  # Python 3.12 itself remembers them
        typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)
    typer.main.get_command = functools.cache(typer.main.get_command)
    typer.main.get_command(program([]))
    _freeze()
    gc.enable()


def main() -> None:
    """Wait for the first order, warm up, serve, and in each fork be a program."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the run, and the run ends this
    orders = socket.socket(fileno=int(sys.argv[1]))
    address = Path(orders.getsockname())
    ready, _, _ = select.select([orders, sys.stdin], [], [])
    order = None
    if orders in ready:
        _warm_everything()
        order = _serve(orders)
    if order is not None:
        _become(order)
    address.unlink()
    address.parent.rmdir()


if __name__ == "__main__":
    main()
