"""A process that fires reminders: `python -m tests.chaos.reminders.bot ORDER` carries out one `Order`."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gateway.app.build import Parts, build
from gateway.app.config import Config
from gateway.app.gateway import Gateway
from gateway.domain.adapter import Accept, Limits
from gateway.domain.chat import Outbound
from gateway.runtime.clock import SystemIds
from gateway.runtime.errors import Ambiguous
from gateway.store.port import Store
from gateway.store.redis import RedisStore
from gateway.store.sqlite.backend import SqliteStore
from tests.chaos.clocks import SHORT_PAUSES, HurriedClock, Shift, StoreClock
from tests.chaos.launch import KillAt, begin
from tests.chaos.parts import Record

PLATFORM: Final = "street"
SHOWN: Final = "shown"  # the file that is the platform
_LEASE: Final = 1.0  # real seconds
_LOOK: Final = 0.05
_DOUBT: Final = 0.1  # of all sends


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One process to be: its number in the run, its folder, its store, and where it kills itself. `origin`: when its
    hurried clock was right (seconds since the epoch)."""

    number: int
    folder: str
    url: str
    origin: float
    point: str | None = None
    passing: int = 1
    poison: str | None = None


class Street:
    """A platform that is a file, a line for each message that is shown. Sometimes nobody hears that it was; who reads
    can tell repeats apart by their id."""

    name = PLATFORM
    limits = Limits(trusted=True, ambiguous_retries=None)

    def __init__(self, record: Record, rng: random.Random) -> None:
        self._record, self._rng = record, rng
        self._ended = asyncio.Event()
        self.begun = asyncio.Event()  # the gateway is up

    async def run(self, accept: Accept) -> None:
        """Nobody says anything."""
        self.begun.set()
        await self._ended.wait()

    async def send(self, outbound: Outbound) -> str:
        """Show it."""
        self._record.add(outbound.id, outbound.to.chat, json.dumps(outbound.text))
        if self._rng.random() < _DOUBT:
            raise Ambiguous("nobody heard the answer")
        return outbound.id

    async def aclose(self) -> None:
        self._ended.set()


def store_at(url: str, clock: HurriedClock, *, read_only: bool = False) -> Store:
    """The store of a run."""
    if url.startswith("redis"):
        return RedisStore(url, clock=StoreClock(clock), lease_seconds=_LEASE, attempt_pauses=SHORT_PAUSES)
    path = Path(url.removeprefix("sqlite:///"))
    return SqliteStore(path, clock=clock, attempt_pauses=SHORT_PAUSES, read_only=read_only)


async def _sweep(gateway: Gateway, begun: asyncio.Event) -> None:
    """Look far more often than once a second, also while another look is on its way."""
    await begun.wait()
    while True:
        await asyncio.sleep(_LOOK)
        await asyncio.gather(gateway.people.firing.fire_due(), gateway.people.firing.fire_due())


async def run(order: Order) -> int:
    """Fire until asked to leave; the exit code."""
    folder = Path(order.folder)
    clock = HurriedClock(order.origin, Shift(folder / "clock"))
    points = KillAt(order, Record(folder / "trace", order.number))
    street = Street(Record(folder / SHOWN, order.number), random.Random(order.number))
    # Each has a message of its own here, by which it is known: what is said together, tests/e2e looks at.
    config = Config.model_validate({"store": {"url": order.url}, "reminders": {"waiting": 1_000}})
    parts = Parts(clock=clock, ids=SystemIds(), points=points, store=store_at(order.url, clock))
    gateway = build(config, [street], parts)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, gateway.stop)
    sweeping = asyncio.create_task(_sweep(gateway, street.begun))
    try:
        return 0 if await gateway.run() else 1
    finally:
        sweeping.cancel()
        with suppress(asyncio.CancelledError):
            await sweeping


if __name__ == "__main__":
    sys.exit(begin(run, Order))
