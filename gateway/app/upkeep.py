"""What the gateway does again and again, besides answering people."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from msgspec import Struct

from gateway.agent.agents import Agents
from gateway.agent.embeddings import LOOK_FOR_VECTORS
from gateway.app.health import Health
from gateway.app.orders import LOOK_EVERY as LOOK_FOR_ORDERS
from gateway.app.orders import Orders
from gateway.people.firing import LOOK_EVERY as LOOK_FOR_REMINDERS
from gateway.people.people import People
from gateway.people.welcome import LOOK_EVERY
from gateway.runtime.clock import Clock
from gateway.runtime.heap import give_back
from gateway.runtime.plugins import imported
from gateway.runtime.tasks import Background
from gateway.turns.expiry import Expiry

_REPEATED: Final = "gateway.app.jobs:repeated"
_SWEEP_SECONDS: Final = 60.0
_REST_EVERY: Final = 1_800.0  # as long as a turn may take
_SHED_EVERY: Final = 21_600.0  # of days
_WORTH_GIVING_BACK: Final = 4_000_000  # bytes
_MANY_ENGINES: Final = 100


class Upkeep(Struct, kw_only=True):
    """`hasty`: a person waits for the first answer, so the library for this is only loaded when the first job is
    due."""

    expiry: Expiry
    people: People
    agents: Agents
    orders: Orders
    health: Health
    background: Background
    clock: Clock
    heartbeat: Callable[[], Awaitable[None]] | None = None
    hasty: bool = False

    def prepare(self) -> None:
        """Load what is needed for it, unless that can wait."""
        if not self.hasty:
            imported(_REPEATED)

    async def look(self) -> None:
        """Do what may have become due while no gateway ran."""
        await self.expiry.sweep()
        await self.people.firing.fire_due()
        await self.people.welcome.look()

    async def repeat(self) -> None:
        """Do all of it, each job in its time."""
        jobs: dict[str, tuple[Callable[[], Awaitable[object]], float]] = {
            "expiry": (self.expiry.sweep, _SWEEP_SECONDS),
            "reminders": (self.people.firing.fire_due, LOOK_FOR_REMINDERS),
            "welcome": (self.people.welcome.look, LOOK_EVERY),
            "orders": (self.orders.look, LOOK_FOR_ORDERS),
            "rest": (self.rest, _REST_EVERY),
            "workspaces": (self.shed, _SHED_EVERY),
        }
        if self.agents.embeddings is not None:
            jobs["embeddings"] = (self.agents.embeddings.look, LOOK_FOR_VECTORS)
        if self.heartbeat is not None:
            jobs["heartbeat"] = (self.heartbeat, _SWEEP_SECONDS)
        if (backups := self.health.backups) is not None:
            jobs["backup"] = (backups.look, _SWEEP_SECONDS)
        if self.hasty:
            await self.clock.sleep(min(seconds for _, seconds in jobs.values()))
        repeated = await asyncio.to_thread(imported, _REPEATED)
        with repeated(jobs, self.background):
            await asyncio.Event().wait()

    async def shed(self) -> None:
        """Delete what has been kept in workspaces for long enough."""
        await asyncio.to_thread(self.agents.workspaces.shed, self.clock.now())

    async def rest(self) -> None:
        """Have the agents rest, and give the memory back where it is worth it."""
        engines, freed = self.agents.rest()
        if freed > _WORTH_GIVING_BACK or engines > _MANY_ENGINES:
            await asyncio.to_thread(give_back)
