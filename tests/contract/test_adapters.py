"""Adapters keep the promises of `legato.testing`, which anybody's adapter can be held to; and it finds who breaks them."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from adapters.slack.platform import PLATFORM as SLACK
from adapters.telegram.platform import PLATFORM as TELEGRAM
from legato_irc import PLATFORM as IRC

from legato.testing import AdapterSuite, Emulator
from tests.emulators.irc import IrcServer
from tests.emulators.slack import SlackServer
from tests.emulators.telegram import Disconnect, TelegramServer
from tests.support.fast_clock import FastClock


class Telegram:
    """Anna and Eve, in their chats with the bot."""

    keeps = True

    def __init__(self, server: TelegramServer) -> None:
        self._server, self.clock = server, server.cloud.clock
        self.settings = {"token": server.token, "base_url": server.base_url}
        self._people = {str(each.id): each for each in map(server.people.person, ("Anna", "Eve"))}
        self.person, self.stranger = self._people
        self._newest: Any = None
        self._buttons: dict[str, Any] = {}

    def _chat(self, who: str) -> Any:
        return self._server.people.private(self._people[who])

    async def say(self, who: str, text: str) -> None:
        self._server.people.say(self._chat(who), self._people[who], text)
        self._newest = self._server.cloud.updates.waiting()[-1]

    def shown(self, who: str) -> list[str]:
        return [each.text for each in self._server.shown(self._chat(who))]

    async def repeat(self) -> None:
        self._server.cloud.updates._pending.appendleft(self._newest)

    async def cut(self) -> None:
        self._server.faults.add(Disconnect(), method="getUpdates")

    def buttons(self, who: str) -> list[str]:
        for message in reversed(self._server.shown(self._chat(who))):
            if message.buttons:
                self._buttons |= {each["text"]: (message, each["callback_data"]) for each in message.buttons}
                return [each["text"] for each in message.buttons]
        return []

    async def press(self, who: str, label: str) -> None:
        message, data = self._buttons[label]
        self._server.people.forge_press(message, self._people[who], data)


class Slack:
    """Anna and Eve, in their direct messages."""

    keeps = True

    def __init__(self, server: SlackServer) -> None:
        self._server, self.clock = server, server.clock
        self.settings = {
            "token": server.settings.token,
            "app_token": server.settings.app_token,
            "base_url": server.api_url,
        }
        self._people = {each.id: each for each in map(server.people.person, ("Anna", "Eve"))}
        self.person, self.stranger = self._people
        self._buttons: dict[str, Any] = {}
        self._newest: Any = None

    async def say(self, who: str, text: str) -> None:
        person = self._people[who]
        self._server.people.say(self._server.people.direct(person), person, text)
        self._newest = list(self._server.delivery.waiting.values())[-1]

    def shown(self, who: str) -> list[str]:
        return [each.visible for each in self._server.shown(self._server.people.direct(self._people[who]))]

    async def repeat(self) -> None:
        self._server.delivery.tell("events_api", self._newest.payload)

    async def cut(self) -> None:
        await self._server.delivery.cut()

    def buttons(self, who: str) -> list[str]:
        for message in reversed(self._server.shown(self._server.people.direct(self._people[who]))):
            if message.buttons:
                kept = copy.copy(message)
                self._buttons |= {each["text"]["text"]: kept for each in message.buttons}
                return [each["text"]["text"] for each in message.buttons]
        return []

    async def press(self, who: str, label: str) -> None:
        self._server.people.press(self._buttons[label], self._people[who], label)


class TestTelegram(AdapterSuite):
    platform = TELEGRAM

    @asynccontextmanager
    async def emulator(self) -> AsyncIterator[Emulator]:
        async with TelegramServer(limits=None, clock=FastClock(pace=10.0)) as server:
            yield Telegram(server)
            assert server.violations == []


class TestSlack(AdapterSuite):
    platform = SLACK

    @asynccontextmanager
    async def emulator(self) -> AsyncIterator[Emulator]:
        async with SlackServer(limited=False, clock=FastClock(pace=10.0)) as server:
            server.settings.retries = (1.0,) * 60
            yield Slack(server)
            assert [str(each) for each in server.violations] == []


class Irc:
    """Anna and Eve on a server with history."""

    keeps, person, stranger = True, "anna", "eve"

    def __init__(self, server: IrcServer) -> None:
        self._server, self.clock = server, FastClock(pace=10.0)
        self.settings = {"port": server.port, "trust_nicks": True}

    async def say(self, who: str, text: str) -> None:
        self._server.say(who, text)

    def shown(self, who: str) -> list[str]:
        return [text for to, text in self._server.said if to == who]

    async def repeat(self) -> None:
        self._server.again()

    async def cut(self) -> None:
        self._server.cut()


class TestIrc(AdapterSuite):
    platform = IRC

    @asynccontextmanager
    async def emulator(self) -> AsyncIterator[Emulator]:
        async with IrcServer() as server:
            yield Irc(server)
            assert server.violations == []
