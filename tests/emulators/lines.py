"""A platform for one person without a screen: lines come from one stream, and what the bot shows goes to another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from tests.emulators.discord import DiscordServer
from tests.emulators.journal import Journal
from tests.emulators.slack import SlackServer
from tests.emulators.telegram import TelegramServer
from tests.emulators.whatsapp import WhatsAppServer
from tests.emulators.whatsapp.checks import visible


class Shown(NamedTuple):
    """A message of the bot's as the person sees it now."""

    message: Any
    text: str
    buttons: Sequence[str]
    in_group: bool = False


class Person(Protocol):
    """Anna at a platform, who has a chat with the bot and, where there are groups, one of those."""

    journal: Journal
    configuration: str  # the lines for config.yaml and for .env, so that a bot talks to this server

    def say(self, text: str, *, in_group: bool) -> None:
        """Write this, or give a slash command. Raises LookupError or ValueError for what a client would not send."""

    def press(self, message: Any, label: str) -> None:
        """Press a button."""

    def shown(self) -> Iterable[Shown]:
        """The bot's messages, oldest first."""


class Lines:
    """`#` before a line says it in the group, and `!Label` presses the newest button of this label."""

    def __init__(self, person: Person, tell: Callable[[str], None]) -> None:
        self._person, self._tell = person, tell
        self._seen: dict[int, str] = {}

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
        offered = [each.message for each in self._person.shown() if line[1:] in each.buttons]
        try:
            if line.startswith("!") and offered:
                self._person.press(offered[-1], line[1:])
            elif line.strip():
                self._person.say(line.removeprefix("#").strip(), in_group=line.startswith("#"))
        except (LookupError, ValueError) as error:
            self._tell(str(error))

    async def _watch(self) -> None:
        while True:
            await self._person.journal.change()
            self.show()

    def show(self) -> None:
        """Tell what is new or has changed."""
        for message, text, buttons, in_group in self._person.shown():
            said = " ".join([*(["#general"] if in_group else []), text, *(f"[{each}]" for each in buttons)])
            if self._seen.get(id(message)) != said:
                self._seen[id(message)] = said
                self._tell(said)


class OnTelegram:
    """Anna on Telegram."""

    def __init__(self, server: TelegramServer) -> None:
        self._server, self.journal = server, server.journal
        self._anna = server.people.person("Anna", username="anna")
        self._chats = (server.people.private(self._anna), server.people.group("general", self._anna))
        self.configuration = (
            f'# config.yaml\nadapters:\n  telegram: {{enabled: true, base_url: "{server.base_url}"}}\n\n'
            f"# .env beside it\nTELEGRAM_BOT_TOKEN={server.token}\n"
        )

    def say(self, text: str, *, in_group: bool) -> None:
        self._server.people.say(self._chats[in_group], self._anna, text)

    def press(self, message: Any, label: str) -> None:
        self._server.people.press(message, self._anna, label)

    def shown(self) -> Iterable[Shown]:
        for in_group, chat in enumerate(self._chats):
            for each in self._server.shown(chat):
                yield Shown(each, each.text, [button["text"] for button in each.buttons], bool(in_group))


class OnDiscord:
    """Anna on Discord. The words behind a slash command are its first option."""

    def __init__(self, server: DiscordServer) -> None:
        self._server, self._people, self.journal = server, server.people, server.journal
        self._anna = self._people.person("Anna")
        place = self._people.general(self._people.guild("Legato", self._anna))
        self._chats = (self._people.direct(self._anna), place)
        self.configuration = (
            f'# config.yaml\nadapters:\n  discord: {{enabled: true, base_url: "{server.api_url}"}}\n\n'
            f"# .env beside it\nDISCORD_BOT_TOKEN={server.token}\n"
        )

    def say(self, text: str, *, in_group: bool) -> None:
        name, _, rest = text.removeprefix("/").partition(" ")
        chat, offered = self._chats[in_group], self._people.commands(self._chats[in_group])
        if not text.startswith("/") or name not in offered:
            self._people.say(chat, self._anna, text)
            return
        options = offered[name].get("options") if rest else None
        given = {options[0]["name"]: int(rest) if options[0]["type"] == 4 else rest} if options else {}
        self._people.command(chat, self._anna, name, **given)

    def press(self, message: Any, label: str) -> None:
        self._people.press(message, self._anna, label)

    def shown(self) -> Iterable[Shown]:
        for in_group, chat in enumerate(self._chats):
            for each in self._server.shown(chat):
                labels = [str(button.get("label") or button.get("custom_id")) for button in each.buttons]
                yield Shown(each, each.content, labels, bool(in_group))


class OnSlack:
    """Anna on Slack."""

    def __init__(self, server: SlackServer) -> None:
        self._people, self.journal = server.people, server.journal
        self._anna = self._people.person("Anna")
        self._chats = (self._people.direct(self._anna), self._people.channel("general", self._anna))
        self.configuration = (
            f'# config.yaml\nadapters:\n  slack: {{enabled: true, base_url: "{server.api_url}"}}\n\n# .env beside it\n'
            f"SLACK_BOT_TOKEN={server.settings.token}\nSLACK_APP_TOKEN={server.settings.app_token}\n"
        )

    def say(self, text: str, *, in_group: bool) -> None:
        if text.startswith("/"):
            command, _, rest = text.partition(" ")
            self._people.command(self._chats[in_group], self._anna, command, rest)
        else:
            self._people.say(self._chats[in_group], self._anna, text)

    def press(self, message: Any, label: str) -> None:
        self._people.press(message, self._anna, label)

    def shown(self) -> Iterable[Shown]:
        for in_group, chat in enumerate(self._chats):
            for each in (message for message in chat.messages if message.user.bot_id):
                labels = [button["text"]["text"] for button in each.buttons]
                yield Shown(each, each.visible, labels, bool(in_group))


class OnWhatsApp:
    """Anna on WhatsApp, where the bot is in no group."""

    def __init__(self, server: WhatsAppServer) -> None:
        self._server, self.journal, given = server, server.journal, server.settings
        self._anna = server.person("Anna")
        self.configuration = (
            f'# config.yaml\nadapters:\n  whatsapp:\n    enabled: true\n    number: "{given.numbers[0]}"\n'
            f'    url: "http://127.0.0.1:8445/whatsapp"\n    base_url: "{server.api_url}"\n\n'
            f"# .env beside it\nWHATSAPP_TOKEN={given.token}\nWHATSAPP_APP_SECRET={given.secret}\n"
        )

    def say(self, text: str, *, in_group: bool) -> None:
        self._server.say(self._anna, text)

    def press(self, message: Any, label: str) -> None:
        self._server.press(self._anna, message, label)

    def shown(self) -> Iterable[Shown]:
        for each in self._server.of_bot(self._anna):
            yield Shown(each, visible(each.text), [*each.buttons])
