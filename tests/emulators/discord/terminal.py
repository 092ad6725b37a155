"""A Discord client for one person at a terminal: see what the bot writes as it writes it, and be anybody."""

from __future__ import annotations

from prompt_toolkit.input import Input
from prompt_toolkit.output import Output

from tests.emulators.discord.drawing import Fragments, draw_channel
from tests.emulators.discord.server import DiscordServer
from tests.emulators.discord.typist import Typist
from tests.emulators.terminal import Screen


class Terminal:
    """A channel, and a line that says who and where one is."""

    def __init__(self, server: DiscordServer, *, stdin: Input | None = None, stdout: Output | None = None) -> None:
        self._server = server
        self._person = Typist(server)
        self._screen = Screen(self, server.journal, stdin=stdin, stdout=stdout)

    async def run(self) -> None:
        """Until the person leaves."""
        await self._screen.run()

    def enter(self, line: str) -> bool:
        """Do what a line says. False once the person wants to leave."""
        return self._person.enter(line)

    def chat(self) -> Fragments:
        """Return the person's view."""
        cloud = self._server.cloud
        shown: Fragments = list(draw_channel(self._person.channel, self._person.me, cloud.bot, cloud.users))
        if not shown:
            shown.append(("class:note", f"{self._introduction}\n"))
        if self._person.said:
            shown.append(("class:note", f"{self._person.said}\n"))
        return shown

    @property
    def _introduction(self) -> str:
        return f"{configuration(self._server)}\nNobody has said anything here. /? lists what you can do."

    def status(self) -> Fragments:
        """Return the line with the person, the place and the bot's doings."""
        channel, me = self._person.channel, self._person.me
        where = "private chat" if channel.recipient is not None else f"#{channel.name} of {self._person.guild.name}"
        where = f"{where}, a thread" if channel.is_thread else where
        shown: Fragments = [("class:status", f" {me.display} in {where} "), ("class:status", f"  bot: {self._bot()}  ")]
        if channel.typing.get(self._server.bot.id, 0.0) > self._server.cloud.clock.monotonic():
            shown.append(("class:action", f" {self._server.bot.name} is typing … "))
        if self._server.violations:
            shown.append(("class:status", f"  refused: {len(self._server.violations)}  "))
        return shown

    def _bot(self) -> str:
        if self._server.connected:
            return "is listening"
        calls = self._server.journal.calls
        return f"last asked {calls[-1].method}" if calls else "has not called yet"


def configuration(server: DiscordServer) -> str:
    """Return the lines for config.yaml, which takes no token, and for .env, so that a bot talks to this server."""
    return (
        "# config.yaml\nadapters:\n"
        f'  discord: {{enabled: true, token: "${{DISCORD_BOT_TOKEN}}", base_url: "{server.api_url}"}}\n\n'
        f"# .env beside it\nDISCORD_BOT_TOKEN={server.token}\n"
    )
