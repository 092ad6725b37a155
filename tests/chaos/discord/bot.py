"""The program: a gateway with a bot. `python -m tests.chaos.discord.bot ORDER` carries out one `BotOrder`."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from adapters.discord.adapter import DiscordAdapter
from gateway.app.build import Parts, build
from gateway.app.config import Config
from gateway.domain.adapter import MenuEntry
from gateway.runtime.clock import SystemIds
from tests.chaos.bots.run import STALLS
from tests.chaos.bots.stalls import watch
from tests.chaos.clocks import PACE, HurriedClock, Shift
from tests.chaos.launch import KillAt, begin
from tests.chaos.parts import Record

PATIENCE: Final = 4.0  # real seconds for an answer of Discord's: none takes that long, however busy the machine
LANE_CAP: Final = 200  # messages that may wait in one conversation: as many as are fetched of one channel
SILENCE: Final = 4.0  # real seconds without a word of the gateway's, which acknowledges a heartbeat every two


@dataclass(frozen=True, slots=True, kw_only=True)
class BotOrder:
    """One process to be: its number in the run, its folder, its model and its Discord, and where it kills itself.
    `origin`: when its hurried clock was right (seconds since the epoch)."""

    number: int
    folder: str
    model: str
    discord: str
    token: str
    origin: float
    point: str | None = None
    passing: int = 1
    poison: str | None = None

    def encode(self) -> str:
        """As the program is told it."""
        return json.dumps(asdict(self))


def configuration(order: BotOrder) -> Config:
    """Everything as it comes; whoever writes may."""
    return Config.model_validate(
        {
            "model": {
                "provider": "openai",
                "name": "test-model",
                "base_url": order.model,
                "api_key": f"process-{order.number}",
                "context_length": 128_000,
            },
            "access": {"allow": ["discord:*"]},
            "turns": {"lane_cap": LANE_CAP},
            "store": {"url": f"sqlite:///{order.folder}/store.db"},
        }
    )


async def run(order: BotOrder) -> int:
    """Be the bot until asked to leave; the exit code."""
    folder = Path(order.folder)
    clock = HurriedClock(order.origin, Shift(folder / "clock"))
    adapter = DiscordAdapter(
        order.token,
        clock=clock,
        base_url=order.discord,
        patience=PATIENCE,
        silence=SILENCE * PACE,
        menu=[MenuEntry(name="help", help="Help.")],
    )
    points = KillAt(order, Record(folder / "trace", order.number))
    gateway = build(configuration(order), [adapter], Parts(clock=clock, ids=SystemIds(), points=points))
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, gateway.stop)
    stalls = Record(folder / STALLS, order.number)
    watching = asyncio.create_task(watch(lambda stall: stalls.add(*map(str, stall))))
    try:
        return 0 if await gateway.run() else 1
    finally:
        watching.cancel()


if __name__ == "__main__":
    sys.exit(begin(run(BotOrder(**json.loads(sys.argv[1])))))
