"""The program: a gateway with a bot. `python -m tests.chaos.matrix.bot ORDER` carries out one `BotOrder`."""

from __future__ import annotations

import sys
from typing import Final

from pydantic import SecretStr

from adapters.matrix.adapter import MatrixAdapter
from adapters.matrix.platform import MatrixSettings
from gateway.app.plugins import all_commands
from tests.chaos.bots.program import BotOrder, be_the_bot, hurried_clock
from tests.chaos.launch import begin
from tests.support.hosts import host

PATIENCE: Final = 4.0  # real seconds for an answer of the server's: none takes that long, however busy the machine
LANE_CAP: Final = 20  # messages that may wait in one conversation: fewer than come at once after an absence


async def run(order: BotOrder) -> int:
    """Be the bot until asked to leave; the exit code. Its token names the account and the password."""
    clock = hurried_clock(order)
    user, password = order.token.split(" ")
    settings = MatrixSettings(
        user=user, password=SecretStr(password), homeserver=order.platform, quoted=0, edit_seconds=1
    )
    menu = [each.entry for each in all_commands().commands]
    adapter = MatrixAdapter(settings, host(clock, menu=menu), patience=PATIENCE)
    return await be_the_bot(order, adapter, clock, turns={"lane_cap": LANE_CAP})


if __name__ == "__main__":
    sys.exit(begin(run, BotOrder))
