"""Slack for one person without a screen: lines come from one stream, and what the bot shows goes to another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tests.emulators.slack.server import SlackServer
from tests.emulators.slack.world import Message


class Lines:
    """Anna in her chat with the bot. `#` before a line says it in a channel, `/command` gives one, `!Label` presses the
    newest button of this label."""

    def __init__(self, server: SlackServer, tell: Callable[[str], None]) -> None:
        self._server, self._tell = server, tell
        self._anna = server.people.person("Anna")
        self._chat = server.people.direct(self._anna)
        self._place = server.people.channel("general", self._anna)
        self._seen: dict[str, str] = {}

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
        people = self._server.people
        if line.startswith("/"):
            command, _, text = line.partition(" ")
            people.command(self._chat, self._anna, command, text)
        elif line.startswith("!"):
            shown = [each for each in self._all() if any(b["text"]["text"] == line[1:] for b in each.buttons)]
            if shown:
                people.press(shown[-1], self._anna, line[1:])
        elif line.startswith("#"):
            people.say(self._place, self._anna, line[1:].strip())
        elif line.strip():
            people.say(self._chat, self._anna, line)

    def _all(self) -> list[Message]:
        return [each for channel in (self._chat, self._place) for each in channel.messages if each.user.bot_id]

    async def _watch(self) -> None:
        while True:
            await self._server.journal.change()
            for message in self._all():
                said = f"{message.visible} {' '.join(each['text']['text'] for each in message.buttons)}".strip()
                if self._seen.get(message.ts) != said:
                    self._seen[message.ts] = said
                    self._tell(f"{'#general ' if message.channel is self._place else ''}{said}")


def configuration(server: SlackServer) -> str:
    """The lines for config.yaml and for .env, so that a bot talks to this server."""
    return (
        f'# config.yaml\nadapters:\n  slack: {{enabled: true, base_url: "{server.api_url}"}}\n\n'
        f"# .env beside it\nSLACK_BOT_TOKEN={server.settings.token}\nSLACK_APP_TOKEN={server.settings.app_token}\n"
    )
