"""Try a bot without Telegram: `python -m tests.emulators.telegram`.

Prints what goes into config.yaml, then shows a chat to type in. Without a terminal, or with `--headless`, it only
serves; people are then moved over HTTP (`inspection`).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys

from tests.emulators.telegram.cloud import Settings
from tests.emulators.telegram.flood import Limits
from tests.emulators.telegram.server import TelegramServer
from tests.emulators.telegram.terminal import Terminal, configuration


async def _serve(options: argparse.Namespace) -> None:
    settings = Settings(privacy=not options.no_privacy)
    limits = None if options.no_limits else Limits()
    async with TelegramServer(settings, limits=limits, host=options.host, port=options.port) as server:
        print(configuration(server), flush=True)
        if options.headless or not sys.stdin.isatty():
            await asyncio.Event().wait()
        else:
            await Terminal(server).run()


def main() -> None:
    """Serve until the person leaves or the program is interrupted."""
    parser = argparse.ArgumentParser(description="A loopback Telegram, with you as its people.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8081)
    parser.add_argument("--headless", action="store_true", help="only serve; no chat")
    parser.add_argument("--no-privacy", action="store_true", help="the bot sees everything in groups")
    parser.add_argument("--no-limits", action="store_true", help="no flood control")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
