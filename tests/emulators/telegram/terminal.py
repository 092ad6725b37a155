"""A Telegram client for one person at a terminal: see what the bot writes as it writes it, and be anybody."""

from __future__ import annotations

from prompt_toolkit.input import Input
from prompt_toolkit.output import Output

from tests.emulators.telegram.drawing import Fragments, draw_chat
from tests.emulators.telegram.server import TelegramServer
from tests.emulators.telegram.typist import Typist
from tests.emulators.terminal import Screen


class Terminal:
    """A chat, and a line that says who and where one is."""

    def __init__(self, server: TelegramServer, *, stdin: Input | None = None, stdout: Output | None = None) -> None:
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
        chat = self._person.chat
        shown: Fragments = list(draw_chat(chat, self._person.me, self._server.bot, self._server.cloud.drafts(chat)))
        if not shown:
            shown.append(("class:note", f"{self._introduction}\n"))
        if self._person.said:
            shown.append(("class:note", f"{self._person.said}\n"))
        return shown

    @property
    def _introduction(self) -> str:
        return f"{configuration(self._server)}\nNobody has said anything yet. /? lists what you can do here."

    def status(self) -> Fragments:
        """Return the line with the person, the place and the bot's doings."""
        chat, me = self._person.chat, self._person.me
        where = chat.title or "private chat"
        topic = chat.topics.get(self._person.topic or 0)
        shown: Fragments = [("class:status", f" {me.first_name} in {where}{f' / {topic}' if topic else ''} ")]
        shown.append(("class:status", f"  bot: {self._bot()}  "))
        if chat.action and chat.action_until > self._server.cloud.clock.monotonic():
            shown.append(("class:action", f" {chat.action} … "))
        return shown

    def _bot(self) -> str:
        calls = self._server.journal.calls
        if not calls:
            return "has not called yet"
        if self._server.cloud.webhook.target is not None:
            return "has a webhook"
        return "is listening" if self._server.cloud.updates.polled else f"last called {calls[-1].method}"


def configuration(server: TelegramServer) -> str:
    """Return the lines for config.yaml, which takes no token, and for .env, so that a bot talks to this server."""
    return (
        "# config.yaml\nadapters:\n"
        f'  telegram: {{enabled: true, token: "${{TELEGRAM_BOT_TOKEN}}", base_url: "{server.base_url}"}}\n\n'
        f"# .env beside it\nTELEGRAM_BOT_TOKEN={server.token}\n"
    )
