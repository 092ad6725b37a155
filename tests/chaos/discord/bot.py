"""The program: a gateway with a bot. `python -m tests.chaos.discord.bot ORDER` carries out one `BotOrder`."""

from __future__ import annotations

import sys
from typing import Final

from adapters.discord.adapter import DiscordAdapter
from gateway.domain.adapter import MenuEntry
from tests.chaos.bots.program import BotOrder, be_the_bot, hurried_clock
from tests.chaos.clocks import PACE
from tests.chaos.launch import begin

PATIENCE: Final = 4.0  # real seconds for an answer of Discord's: none takes that long, however busy the machine
LANE_CAP: Final = 200  # messages that may wait in one conversation: as many as are fetched of one channel
SILENCE: Final = 4.0  # real seconds without a word of the gateway's, which acknowledges a heartbeat every two


async def run(order: BotOrder) -> int:
    """Be the bot until asked to leave; the exit code."""
    clock = hurried_clock(order)
    adapter = DiscordAdapter(
        order.token,
        clock=clock,
        base_url=order.platform,
        patience=PATIENCE,
        silence=SILENCE * PACE,
        menu=[MenuEntry(name="help", help="Help.")],
    )
    return await be_the_bot(order, adapter, clock, turns={"lane_cap": LANE_CAP})


if __name__ == "__main__":
    sys.exit(begin(run, BotOrder))
