"""The program under test: the real console adapter on the real SQLite store, wired by `build`.

`python -m tests.chaos.launch ORDER` carries out one `Order`, which is JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

from adapters.console.adapter import JsonConsole
from gateway.app.build import Parts, build
from gateway.app.config import Config
from gateway.context.engine import ContextEngine
from gateway.domain.adapter import Adapter
from gateway.runtime.clock import SystemIds
from gateway.runtime.logs import configure_logs
from gateway.runtime.points import Point
from gateway.runtime.redaction import Redactor
from gateway.store.sqlite.backend import SqliteStore
from tests.chaos.clocks import SHORT_PAUSES, HurriedClock, Shift
from tests.chaos.parts import Record, RecordingEngine, configuration, passing, subject, tools
from tests.chaos.socket_adapter import PollingSocketAdapter, SocketAdapter
from tests.support.hosts import host

Ordered = TypeVar("Ordered", bound="Killing")
_NO_ROOM: Final = 48 * 1024  # bytes of a file; the store's own log is longer after its first messages


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


class Killing(Protocol):
    """The place where a process is to kill itself; see `Order`."""

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
    """Return the text of the message whose turn has just been claimed."""
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
    store = SqliteStore(
        folder / "store.db",
        clock=clock,
        concurrency=config.turns.concurrent,
        attempt_pauses=SHORT_PAUSES,
    )
    parts = Parts(clock=clock, ids=ids, points=points, engine=engine, tools=tools(folder, order.number), store=store)
    adapters: list[Adapter] = [JsonConsole(0, 1, host(clock, ids=ids))]
    if order.platform is not None:
        reads = PollingSocketAdapter if order.polls else SocketAdapter
        adapters.append(reads(order.platform, process=order.number, clock=clock))
    filling = asyncio.create_task(fill_the_disk(points.begun, *order.full)) if order.full else None
    try:
        return await serve(config, adapters, parts)
    finally:
        if filling is not None:
            filling.cancel()


async def serve(config: Config, adapters: Sequence[Adapter], parts: Parts) -> int:
    """Be a gateway until asked to leave; the exit code."""
    gateway = build(config, adapters, parts)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, gateway.stop)
    return 0 if await gateway.run() else 1


def encoded(order: Any) -> str:
    """An order as `begin` reads it."""
    return json.dumps(asdict(order))


def begin(program: Callable[[Ordered], Coroutine[Any, Any, int]], order: Callable[..., Ordered]) -> int:
    """Carry out the order on the command line, with a log that can be read; the exit code."""
    configure_logs(level="info", form="json", redact=Redactor(()))
    return asyncio.run(program(order(**json.loads(sys.argv[1]))))


if __name__ == "__main__":
    sys.exit(begin(run, Order))
