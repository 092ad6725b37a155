"""The program: a gateway with a bot. `python -m tests.chaos.whatsapp.bot ORDER` carries out one `BotOrder`."""

from __future__ import annotations

import sys
from typing import Final

from pydantic import SecretStr

from adapters.whatsapp.adapter import WhatsAppBot
from adapters.whatsapp.platform import WhatsAppSettings
from tests.chaos.bots.program import BotOrder, be_the_bot, hurried_clock
from tests.chaos.clocks import PACE
from tests.chaos.launch import begin
from tests.support.hosts import host

PATIENCE: Final = 4.0  # real seconds for an answer of Meta's: none takes that long, however busy the machine
LANE_CAP: Final = 20  # messages that may wait in one conversation: fewer than come at once after an absence


async def run(order: BotOrder) -> int:
    """Be the bot until asked to leave; the exit code. Its token names the secret, the port and the numbers, too."""
    clock = hurried_clock(order)
    token, secret, port, *numbers = order.token.split(" ")
    settings = WhatsAppSettings(
        number=numbers[0],
        numbers=tuple(numbers[1:]),
        token=SecretStr(token),
        secret=SecretStr(secret),
        url=f"http://127.0.0.1:{port}/whatsapp",
        port=int(port),
        base_url=order.platform,
    )
    adapter = WhatsAppBot(settings, host(clock), patience=PATIENCE * PACE, paced=False)
    return await be_the_bot(order, adapter, clock, turns={"lane_cap": LANE_CAP})


if __name__ == "__main__":
    sys.exit(begin(run, BotOrder))
