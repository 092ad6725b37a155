"""The program: a gateway with a bot. `python -m tests.chaos.slack.bot ORDER` carries out one `BotOrder`."""

from __future__ import annotations

import sys
from typing import Final

from pydantic import SecretStr

from adapters.slack.adapter import SlackAdapter
from adapters.slack.platform import SlackSettings
from gateway.app.plugins import all_commands
from tests.chaos.bots.program import BotOrder, be_the_bot, hurried_clock
from tests.chaos.clocks import PACE
from tests.chaos.launch import begin
from tests.support.hosts import host

PATIENCE: Final = 4.0  # real seconds for an answer of Slack's: none takes that long, however busy the machine
LANE_CAP: Final = 200  # messages that may wait in one conversation: as many as are fetched of one place


async def run(order: BotOrder) -> int:
    """Be the bot until asked to leave; the exit code. Its token names both of Slack's."""
    clock = hurried_clock(order)
    token, _, app_token = order.token.partition(" ")
    settings = SlackSettings(token=SecretStr(token), app_token=SecretStr(app_token), base_url=order.platform)
    menu = [each.entry for each in all_commands().commands]
    adapter = SlackAdapter(settings, host(clock, menu=menu), patience=PATIENCE * PACE, paced=False)
    return await be_the_bot(order, adapter, clock, turns={"lane_cap": LANE_CAP})


if __name__ == "__main__":
    sys.exit(begin(run, BotOrder))
