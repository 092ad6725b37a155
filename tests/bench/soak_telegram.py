"""Half an hour of a busy bot on Telegram in eight minutes: 12,000 messages over 100 chats, as fast as Telegram's limits
let them be answered, by a model that answers at once and by one that takes a tenth of a second.

All are shown, and no connection is taken in the end. Where that is not so, it says so and exits with 1.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Final

from pydantic import SecretStr

from adapters.telegram.adapter import TelegramAdapter
from adapters.telegram.platform import TelegramSettings
from gateway.runtime.heap import collect_seldom
from tests.bench.telegram import platform
from tests.bench.world import Instant, bot, log_as_in_production, quiet
from tests.support.hosts import host
from tests.support.telegram_live import left_in_use

CHATS: Final = 100
MODELS: Final = (0.0, 0.1)  # seconds
_SILENT: Final = 10.0  # messages a second; a bot that shows fewer is taken for a silent one


async def soak(messages: int) -> bool:
    """Say whether all that was said was answered."""
    async with platform("tests.bench.telegram_people", "limited") as people:
        settings = TelegramSettings(token=SecretStr(people.token), base_url=people.base_url)
        for seconds in MODELS:
            adapter = TelegramAdapter(settings, host())
            each = messages // len(MODELS) // CHATS
            async with bot(adapter, Instant(seconds=seconds)) as gateway:
                try:
                    async with asyncio.timeout(60 + each * CHATS / _SILENT):
                        spent = await people.talk(each, lambda: quiet(gateway), chats=CHATS)
                except TimeoutError:
                    print(f"model at {seconds} s: not all of {each * CHATS} were answered", file=sys.stderr)
                    return False
                taken = await left_in_use(adapter)
            print(f"model at {seconds} s: {each * CHATS} shown, {spent.rate:.0f}/s, {taken} connections in use")
            if taken:
                return False
    return True


def main() -> None:
    """The long form, or as many messages as are asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak_telegram")
    parser.add_argument("--messages", type=int, default=12_000)
    collect_seldom()
    log_as_in_production()
    sys.exit(0 if asyncio.run(soak(parser.parse_args().messages)) else 1)


if __name__ == "__main__":
    main()
