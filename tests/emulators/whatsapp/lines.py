"""WhatsApp for one person without a screen: lines come from one stream, and what the bot shows goes to another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.emulators.whatsapp.checks import visible
from tests.emulators.whatsapp.server import WhatsAppServer


class Lines:
    """Anna in her chat with the bot. `!Label` presses the newest button or row of this label."""

    def __init__(self, server: WhatsAppServer, tell: Callable[[str], None]) -> None:
        self._server, self._tell = server, tell
        self._anna = server.person("Anna")
        self._seen: set[str] = set()

    async def run(self, reader: asyncio.StreamReader) -> None:
        """Until the lines end."""
        watching = asyncio.get_running_loop().create_task(self._watch())
        try:
            while line := (await reader.readline()).decode():
                self.enter(line.rstrip("\n"))
        finally:
            watching.cancel()

    def enter(self, line: str) -> None:
        """Do what a line says."""
        offered = [each for each in self._server.of_bot(self._anna) if line[1:] in each.buttons]
        if line.startswith("!") and offered:
            self._server.press(self._anna, offered[-1], line[1:])
        elif line.strip():
            self._server.say(self._anna, line)

    async def _watch(self) -> None:
        while True:
            await self._server.journal.change()
            for message in self._server.of_bot(self._anna):
                if message.id not in self._seen:
                    self._seen.add(message.id)
                    self._tell(f"{visible(message.text)} {' '.join(f'[{each}]' for each in message.buttons)}".strip())


def configuration(server: WhatsAppServer) -> str:
    """The lines for config.yaml and for .env, so that a bot talks to this server."""
    given = server.settings
    return (
        f'# config.yaml\nadapters:\n  whatsapp:\n    enabled: true\n    number: "{given.numbers[0]}"\n'
        f'    url: "http://127.0.0.1:8445/whatsapp"\n    base_url: "{server.api_url}"\n\n'
        f"# .env beside it\nWHATSAPP_TOKEN={given.token}\nWHATSAPP_APP_SECRET={given.secret}\n"
    )
