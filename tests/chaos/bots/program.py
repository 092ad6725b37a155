"""The parts that the programs of all bots share: their order, their configuration, and a gateway that notes when it
stood still."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway.agent.tools.base import Tool
from gateway.app.build import Parts
from gateway.app.config import Config
from gateway.domain.adapter import Adapter
from gateway.runtime.clock import SystemIds
from tests.chaos.bots.run import STALLS
from tests.chaos.bots.stalls import Beat, watch
from tests.chaos.clocks import HurriedClock, Shift, StoreClock
from tests.chaos.launch import KillAt, serve
from tests.chaos.node import NodeStore, Trace
from tests.chaos.parts import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class BotOrder:
    """One process to be: its number in the run, its folder, its model and its platform, and where it kills itself.
    `origin`: when its hurried clock was right (seconds since the epoch). `store`: a Redis server; "": the file in its
    folder."""

    number: int
    folder: str
    model: str
    platform: str
    token: str
    origin: float
    point: str | None = None
    passing: int = 1
    poison: str | None = None
    store: str = ""


def hurried_clock(order: BotOrder) -> HurriedClock:
    """The clock of the run."""
    return HurriedClock(order.origin, Shift(Path(order.folder) / "clock"))


async def be_the_bot(
    order: BotOrder, adapter: Adapter, clock: HurriedClock, *, with_tools: Sequence[Tool] = (), **sections: Any
) -> int:
    """Serve the platform until asked to leave; the exit code. Whoever writes may, and everything beside `sections` is
    as it comes."""
    folder = Path(order.folder)
    config = Config.model_validate(
        {
            "model": {
                "provider": "openai",
                "name": "test-model",
                "base_url": order.model,
                "api_key": f"process-{order.number}",
                "context_length": 128_000,
            },
            "access": {"allow": [f"{adapter.name}:*"]},
            "store": {"url": order.store or f"sqlite:///{order.folder}/store.db"},
            **sections,
        }
    )
    points = KillAt(order, Record(folder / "trace", order.number))
    stalls = Record(folder / STALLS, order.number)
    watching = asyncio.create_task(watch(lambda stall: stalls.add(*map(str, stall)), Beat(folder, order.number).keep))
    store = None
    if order.store:
        store = NodeStore(order.store, clock=StoreClock(clock), trace=Trace(folder, order.number))
    parts = Parts(clock=clock, ids=SystemIds(), points=points, tools=with_tools, store=store)
    try:
        return await serve(config, [adapter], parts)
    finally:
        watching.cancel()
