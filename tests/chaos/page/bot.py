"""The program: a gateway with the page. `python -m tests.chaos.page.bot ORDER` carries out one `PageOrder`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from adapters.web.adapter import WebAdapter
from adapters.web.platform import WebSettings
from tests.chaos.bots.program import BotOrder, be_the_bot, hurried_clock
from tests.chaos.launch import begin
from tests.support.page import host_in


@dataclass(frozen=True, slots=True, kw_only=True)
class PageOrder(BotOrder):
    """`port`: where the page is."""

    port: int


async def run(order: PageOrder) -> int:
    """Serve until asked to leave; the exit code."""
    clock = hurried_clock(order)
    host = host_in(Path(order.folder), clock)
    return await be_the_bot(order, WebAdapter(WebSettings(enabled=True, port=order.port), host), clock)


if __name__ == "__main__":
    sys.exit(begin(run, PageOrder))
