"""The program: a gateway with a bot. `python -m tests.chaos.telegram.bot ORDER` carries out one `TelegramOrder`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Final

from pydantic import SecretStr

from adapters.telegram.adapter import TelegramAdapter, TelegramBot
from adapters.telegram.platform import TelegramSettings, Webhook
from adapters.telegram.webhook import WebhookAdapter
from gateway.domain.adapter import MenuEntry
from tests.chaos.bots.program import BotOrder, be_the_bot, hurried_clock
from tests.chaos.launch import begin
from tests.support.hosts import host

PATIENCE: Final = 4.0  # real seconds for an answer of Telegram's: none takes that long, however busy the machine


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramOrder(BotOrder):
    """`drafts`: a reply grows as drafts; `port`: where Telegram calls the bot, None: the bot polls."""

    drafts: bool = False
    port: int | None = None


async def run(order: TelegramOrder) -> int:
    """Be the bot until asked to leave; the exit code."""
    clock = hurried_clock(order)
    webhook = Webhook(url=f"http://127.0.0.1:{order.port}/telegram", port=order.port) if order.port else Webhook()
    settings = TelegramSettings(
        token=SecretStr(order.token),
        base_url=order.platform,
        streaming="drafts" if order.drafts else "edits",
        webhook=webhook,
    )
    kind: type[TelegramBot] = TelegramAdapter if order.port is None else WebhookAdapter
    given = host(clock, menu=[MenuEntry(name="help", help="Help.")])
    return await be_the_bot(order, kind(settings, given, patience=PATIENCE), clock)


if __name__ == "__main__":
    sys.exit(begin(run, TelegramOrder))
