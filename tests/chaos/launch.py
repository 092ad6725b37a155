"""The program under test, and the process that starts it again and again.

`python -m tests.chaos.launch FD` imports everything once and then, for every order that comes
through the socket FD, forks a process that is the gateway: the real console adapter on the real
SQLite store, wired by `bootstrap.build`. A fork costs 10 ms where a fresh interpreter costs a second;
what SIGKILL does to it, and what its files look like afterwards, is the same.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import gateway.providers.catalog
import gateway.providers.http
import gateway.providers.openai.chat_completions
from adapters.console import JsonConsole
from gateway.app.build import Parts, build
from gateway.app.config import Config
from gateway.context.engine import ContextEngine
from gateway.domain.adapter import Adapter
from gateway.runtime import tokens
from gateway.runtime.clock import SystemIds
from gateway.runtime.logs import configure_logs
from gateway.runtime.points import Point
from gateway.runtime.redaction import Redactor
from gateway.runtime.tokens import TokenCounter
from tests.chaos.clocks import HurriedClock, Shift
from tests.chaos.parts import Record, RecordingEngine, configuration, passing, subject, tools
from tests.chaos.socket_adapter import PollingSocketAdapter, SocketAdapter

ORDER_BYTES: Final = 64 * 1024
_NO_ROOM: Final = 48 * 1024  # bytes of a file; the store's own log is longer after its first messages
_WARM: Final = (gateway.providers.catalog, gateway.providers.openai.chat_completions, gateway.providers.http)


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One process to be: its number in the run, its folder, its model, and where it kills itself:
    at the `passing`-th time it passes `point`, and whenever it claims a message that says `poison`. `full`:
    after how many seconds its disk is full, and for how long. `origin`: when its hurried clock was right
    (seconds since the epoch); `platform`: where to find the one that it serves beside the terminal."""

    number: int
    folder: str
    base_url: str
    window: int
    point: str | None = None
    passing: int = 1
    poison: str | None = None
    busy_mode: str = "queue"
    full: tuple[float, float] | None = None
    origin: float = 0.0
    platform: str | None = None
    polls: bool = True

    def encode(self) -> bytes:
        """As it goes through the socket."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__}).encode()


class Killing(Protocol):
    """Where a process is to kill itself; see `Order`."""

    @property
    def point(self) -> str | None: ...
    @property
    def passing(self) -> int: ...
    @property
    def poison(self) -> str | None: ...


class KillAt:
    """The `Points` that keeps a trace and ends the process at the chosen passing."""

    def __init__(self, order: Killing, trace: Record) -> None:
        self._left = order.passing if order.point else 0
        self._order = order
        self._trace = trace
        self.begun = asyncio.Event()  # the store is open, and something has come

    def __call__(self, point: Point, /) -> None:
        self._trace.add(point, *subject(point))
        self.begun.set()
        self._left -= point == self._order.point
        chosen = point == self._order.point and not self._left
        if chosen or (point == "turn.claimed" and self._order.poison == _claimed_text()):
            os.kill(os.getpid(), signal.SIGKILL)


def _claimed_text() -> str:
    """What the message says whose turn has just been claimed."""
    return str(passing()["item"].inbound.text)


async def fill_the_disk(begun: asyncio.Event, after: float, seconds: float) -> None:
    """No file grows for a while, whoever writes it: what the kernel refuses is what a full disk is. Not
    before something was received: a program that cannot open its store does not start."""
    await begun.wait()
    await asyncio.sleep(after)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_NO_ROOM, hard))
    try:
        await asyncio.sleep(seconds)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


async def run(order: Order) -> int:
    """Be the gateway until the input ends; the exit code."""
    config = configuration(
        number=order.number,
        model=order.base_url,
        window=order.window,
        store=f"sqlite:///{order.folder}/store.db",
        sessions={"busy_mode": order.busy_mode},
    )
    folder, ids = Path(order.folder), SystemIds()
    clock = HurriedClock(order.origin, Shift(folder / "clock"))
    trace = Record(folder / "trace", order.number)

    def engine() -> ContextEngine:
        return RecordingEngine(config, Record(folder / "hooks", order.number), trace)

    points = KillAt(order, trace)
    parts = Parts(clock=clock, ids=ids, points=points, engine=engine, tools=tools(folder, order.number))
    adapters: list[Adapter] = [JsonConsole(0, 1, ids=ids, clock=clock)]
    if order.platform is not None:
        reads = PollingSocketAdapter if order.polls else SocketAdapter
        adapters.append(reads(order.platform, process=order.number, clock=clock))
    filling = asyncio.create_task(fill_the_disk(points.begun, *order.full)) if order.full else None
    try:
        return await _serve(config, adapters, parts)
    finally:
        if filling is not None:
            filling.cancel()


async def _serve(config: Config, adapters: Sequence[Adapter], parts: Parts) -> int:
    gateway = build(config, adapters, parts)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, gateway.stop)
    return 0 if await gateway.run() else 1


def become(program: Coroutine[Any, Any, int], descriptors: list[int]) -> None:
    """In the forked process: take over the descriptors, run, leave without coming back."""
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    configure_logs(level="info", form="json", redact=Redactor(()))
    code = 70
    try:
        code = asyncio.run(program)
    finally:
        sys.stderr.flush()
        os._exit(code)


def serve(orders: socket.socket, program: Callable[[Mapping[str, Any]], Coroutine[Any, Any, int]]) -> None:
    """Fork a process for every order, one at a time: say its id at once, its exit status at its end."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(orders, ORDER_BYTES, 3)
        if not data:
            return
        child = os.fork()
        if not child:
            orders.close()
            become(program(json.loads(data)), descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        orders.sendall(f"{child}\n".encode())
        _, status = os.waitpid(child, 0)
        orders.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def main(program: Callable[[Mapping[str, Any]], Coroutine[Any, Any, int]]) -> None:
    """Warm up, then serve."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # in every fork, until it listens to it
    # The vocabulary takes 0.25 s to read: read once here, it is there in every fork.
    tokens._load = functools.cache(tokens._load)  # type: ignore[assignment]
    TokenCounter().text("warm")
    serve(socket.socket(fileno=int(sys.argv[1])), program)


if __name__ == "__main__":
    main(lambda order: run(Order(**order)))
