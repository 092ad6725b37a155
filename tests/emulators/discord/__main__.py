"""Try a bot without Discord: `python -m tests.emulators.discord`.

Prints what goes into config.yaml, then shows a channel to type in. Without a terminal, lines are read from standard
input and what changes is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys

from tests.emulators.discord.buckets import Limits
from tests.emulators.discord.cloud import Settings
from tests.emulators.discord.intents import KNOWN, Intent
from tests.emulators.discord.lines import Lines
from tests.emulators.discord.server import DiscordServer
from tests.emulators.discord.terminal import Terminal, configuration


async def _serve(options: argparse.Namespace) -> None:
    allowed = KNOWN & ~Intent.MESSAGE_CONTENT if options.no_content else KNOWN
    limits = None if options.no_limits else Limits()
    settings = Settings(allowed_intents=int(allowed))
    async with DiscordServer(settings, limits=limits, host=options.host, port=options.port) as server:
        print(configuration(server), flush=True)
        if sys.stdin.isatty():
            await Terminal(server).run()
        else:
            await Lines(server, lambda text: print(text, flush=True)).run(await _standard_input())


async def _standard_input() -> asyncio.StreamReader:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader


def main() -> None:
    """Serve until the person leaves or the program is interrupted."""
    parser = argparse.ArgumentParser(description="A loopback Discord, with you as its people.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8082)
    parser.add_argument("--no-content", action="store_true", help="the portal does not allow Message Content")
    parser.add_argument("--no-limits", action="store_true", help="no rate limits")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    main()
