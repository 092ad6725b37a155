"""The program: a gateway with a bot. `python -m tests.chaos.discord.bot ORDER` carries out one `BotOrder`."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import SecretStr

from adapters.discord.adapter import DiscordAdapter
from adapters.discord.platform import DiscordSettings
from gateway.agent.tools.base import ToolContext
from gateway.app.plugins import all_commands
from tests.chaos.bots.program import BotOrder, be_the_bot, hurried_clock
from tests.chaos.clocks import PACE
from tests.chaos.launch import begin
from tests.chaos.parts import Record
from tests.support.hosts import host

PATIENCE: Final = 4.0  # real seconds for an answer of Discord's: none takes that long, however busy the machine
LANE_CAP: Final = 200  # messages that may wait in one conversation: as many as are fetched of one channel
PAID: Final = "paid"  # the record of what was paid
SILENCE: Final = 4.0  # real seconds without a word of the gateway's, which acknowledges a heartbeat every two


class Payment:
    """Pays, if a person says yes, and keeps a record of that."""

    name = "pay"
    description = "Pays."
    parameters: Mapping[str, Any] = {"type": "object", "properties": {"token": {"type": "string"}}}
    read_only = False
    idempotent = False
    admins_only = False
    setting = "tools.pay.allow"
    timeout = 60.0

    def __init__(self, record: Record) -> None:
        self._record = record

    def question(self, arguments: Mapping[str, Any]) -> str:
        """Always ask."""
        return f"Pay for {arguments['token']}?"

    async def run(self, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Pay."""
        self._record.add(str(arguments["token"]))
        return "Paid."


async def run(order: BotOrder) -> int:
    """Be the bot until asked to leave; the exit code."""
    clock = hurried_clock(order)
    adapter = DiscordAdapter(
        DiscordSettings(token=SecretStr(order.token), base_url=order.platform),
        host(clock, menu=[each.entry for each in all_commands().commands]),
        patience=PATIENCE,
        silence=SILENCE * PACE,
    )
    payment = Payment(Record(Path(order.folder) / PAID, order.number))
    return await be_the_bot(order, adapter, clock, with_tools=[payment], turns={"lane_cap": LANE_CAP})


if __name__ == "__main__":
    sys.exit(begin(run, BotOrder))
