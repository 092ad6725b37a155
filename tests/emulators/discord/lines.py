"""The same person without a screen: lines come from one stream, and what changes goes to another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from prompt_toolkit.formatted_text.utils import fragment_list_to_text

from tests.emulators.discord.drawing import draw_channel
from tests.emulators.discord.server import DiscordServer
from tests.emulators.discord.typist import Typist


class Lines:
    """Reads what the person types and tells what they then see for the first time."""

    def __init__(self, server: DiscordServer, tell: Callable[[str], None]) -> None:
        self._server, self._tell = server, tell
        self._person = Typist(server)
        self._seen: set[str] = set()
        self._said = ""

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Until the person leaves or the lines end."""
        watching = asyncio.get_running_loop().create_task(self._watch())
        try:
            while line := (await reader.readline()).decode():
                if not self._person.enter(line.rstrip("\n")):
                    return
                self.show()
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        while True:
            await self._server.journal.change()
            self.show()

    def show(self) -> None:
        """Tell what is new in the person's channel."""
        cloud = self._server.cloud
        drawn = fragment_list_to_text(draw_channel(self._person.channel, self._person.me, cloud.bot, cloud.users))
        for block in drawn.split("\n\n"):
            if block.strip() and block not in self._seen:
                self._seen.add(block)
                self._tell(block.strip("\n"))
        if self._person.said != self._said:
            self._said = self._person.said
            self._tell(self._said)
