"""Adapters keep the promises of `legato.testing`, and that finds who breaks one."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import islice
from typing import Any

import pytest

import legato_irc.codec
import test_irc
from adapters.discord.platform import PLATFORM as DISCORD
from adapters.matrix.codec import BUTTONS
from adapters.matrix.platform import PLATFORM as MATRIX
from adapters.slack.adapter import SlackBot
from adapters.slack.platform import PLATFORM as SLACK
from adapters.telegram.platform import PLATFORM as TELEGRAM
from adapters.telegram.receiving import Receiver
from adapters.whatsapp.platform import PLATFORM as WHATSAPP
from gateway.domain.adapter import Limits
from gateway.domain.chat import Outbound
from gateway.runtime.backoff import Backoff
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.structs import replace
from legato.testing import AdapterSuite, Emulator
from legato_irc.adapter import Irc
from tests.emulators.discord import DiscordServer
from tests.emulators.discord import Settings as DiscordWorld
from tests.emulators.matrix import MatrixServer, text_in
from tests.emulators.slack import SlackServer
from tests.emulators.telegram import Disconnect, TelegramServer
from tests.emulators.whatsapp import Settings, WhatsAppServer
from tests.support.fast_clock import FastClock
from tests.support.redis_server import free_port


class Telegram(Emulator):
    """Anna and Eve, in their chats with the bot."""

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


class Slack(Emulator):
    """Anna and Eve, in their direct messages."""

    anna = ""

    def __init__(self, server: SlackServer) -> None:
        self._server, self.clock = server, server.clock
        self.settings = {
            "token": server.settings.token,
            "app_token": server.settings.app_token,
            "base_url": server.api_url,
        }
        self._people = {each.id: each for each in map(server.people.person, ("Anna", "Eve"))}
        self.person, self.stranger = self._people
        Slack.anna = self.person
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


class WhatsApp:
    """Anna and Eve, who write to the bot's number."""

    keeps = True

    def __init__(self, server: WhatsAppServer) -> None:
        self._server, self.clock = server, server.clock
        given, port = server.settings, free_port()
        self.settings = {
            "number": given.numbers[0],
            "token": given.token,
            "secret": given.secret,
            "url": f"http://127.0.0.1:{port}/whatsapp",
            "port": port,
            "base_url": server.api_url,
        }
        self._people = {each.number: each for each in map(server.person, ("Anna", "Eve"))}
        self.person, self.stranger = self._people
        self._buttons: dict[str, Any] = {}

    async def say(self, who: str, text: str) -> None:
        self._server.say(self._people[who], text)

    def shown(self, who: str) -> list[str]:
        return self._server.shown(self._people[who])

    async def repeat(self) -> None:
        told = self._server.delivery.told
        await self._server.delivery.post(json.dumps([e for e in told if e.kind == "messages"][-1].payload).encode())

    async def cut(self) -> None:
        await self._server.delivery.hang_up()

    def buttons(self, who: str) -> list[str]:
        for message in reversed(self._server.of_bot(self._people[who])):
            if message.buttons:
                self._buttons |= dict.fromkeys(message.buttons, message)
                return list(message.buttons)
        return []

    async def press(self, who: str, label: str) -> None:
        self._server.press(self._people[who], self._buttons[label], label)


class Discord(Emulator):
    """Anna and Eve, in their direct messages."""

    def __init__(self, server: DiscordServer) -> None:
        self._server, self.clock = server, server.cloud.clock
        self.settings = {"token": server.token, "base_url": server.api_url}
        self._people = {str(each.id): each for each in map(server.people.person, ("Anna", "Eve"))}
        self.person, self.stranger = self._people
        self._buttons: dict[str, Any] = {}
        self._newest: Any = None

    async def say(self, who: str, text: str) -> None:
        person = self._people[who]
        if self._newest is None:  # nobody tells a bot of a chat that began before it was there
            await self._server.until(lambda: self._server.connected)
        self._newest = self._server.people.say(self._server.people.direct(person), person, text)

    def shown(self, who: str) -> list[str]:
        return [each.content for each in self._server.shown(self._server.people.direct(self._people[who]))]

    async def repeat(self) -> None:
        self._server.cloud.tell_message("MESSAGE_CREATE", self._newest)

    async def cut(self) -> None:
        self._server.close(4000)

    def buttons(self, who: str) -> list[str]:
        for message in reversed(self._server.shown(self._server.people.direct(self._people[who]))):
            if message.buttons:
                self._buttons |= {each["label"]: (message, each["custom_id"]) for each in message.buttons}
                return [each["label"] for each in message.buttons]
        return []

    async def press(self, who: str, label: str) -> None:
        message, button = self._buttons[label]
        self._server.people.forge_press(message, self._people[who], button)


class Matrix(Emulator):
    """Anna, who invites the bot, and Eve, in whose room it is."""

    def __init__(self, server: MatrixServer) -> None:
        self._server, self.clock, world = server, server.clock, server.world
        self.settings = {"user": server.bot.id, "password": server.password, "homeserver": server.url}
        anna, eve = map(world.person, ("Anna", "Eve"))
        self.person, self.stranger = anna.id, eve.id
        invited = world.room(anna, invited=[server.bot], direct=True)
        self._rooms = {anna.id: invited, eve.id: world.room(eve, server.bot)}
        self._buttons: dict[str, str] = {}
        self._newest = ""

    async def say(self, who: str, text: str) -> None:
        room = self._rooms[who]
        await self._server.until(lambda: room.membership(self._server.bot.id) == "join")
        self._newest = self._server.world.say(room, self._server.world.users[who], text)

    def shown(self, who: str) -> list[str]:
        return [text_in(each["content"]) for each in self._server.shown(self._rooms[who])]

    async def repeat(self) -> None:
        self._server.world.again(self._newest)

    async def cut(self) -> None:
        self._server.cut()

    def buttons(self, who: str) -> list[str]:
        for each in reversed(self._server.shown(self._rooms[who])):
            if keys := each["content"].get(BUTTONS):
                self._buttons |= dict.fromkeys(keys, each["event_id"])
                return list(keys)
        return []

    async def press(self, who: str, label: str) -> None:
        relation = {"rel_type": "m.annotation", "event_id": self._buttons[label], "key": label}
        people, room = self._server.world.users, self._rooms[self.person]
        self._server.world.put(room, people[who], "m.reaction", {"m.relates_to": relation})


class TestDiscord(AdapterSuite):
    platform = DISCORD

    @pytest.mark.slow
    def test_whenever_it_dies_nothing_is_lost_and_repeats_are_marked(self) -> None:
        super().test_whenever_it_dies_nothing_is_lost_and_repeats_are_marked()

    @asynccontextmanager
    async def emulator(self) -> AsyncIterator[Emulator]:
        settings = DiscordWorld(heartbeat=2.0, identify_every=0.0)  # the program begins anew more often than people do
        async with DiscordServer(settings, limits=None, clock=FastClock(pace=10.0)) as server:
            yield Discord(server)
            assert [str(each) for each in server.violations] == []


class TestMatrix(AdapterSuite):
    platform = MATRIX

    @pytest.mark.slow
    def test_whenever_it_dies_nothing_is_lost_and_repeats_are_marked(self) -> None:
        super().test_whenever_it_dies_nothing_is_lost_and_repeats_are_marked()

    @asynccontextmanager
    async def emulator(self) -> AsyncIterator[Emulator]:
        async with MatrixServer(clock=FastClock(pace=10.0)) as server:
            yield Matrix(server)
            assert [str(each) for each in server.violations] == []


class TestWhatsApp(AdapterSuite):
    platform = WHATSAPP

    @pytest.mark.slow
    def test_whenever_it_dies_nothing_is_lost_and_repeats_are_marked(self) -> None:
        super().test_whenever_it_dies_nothing_is_lost_and_repeats_are_marked()

    @asynccontextmanager
    async def emulator(self) -> AsyncIterator[Emulator]:
        settings = Settings(retries=(1.0,) * 60)
        async with WhatsAppServer(settings, limited=False, clock=FastClock(pace=10.0)) as server:
            yield WhatsApp(server)
            assert [str(each) for each in server.violations] == []


class TestTelegram(AdapterSuite):
    platform = TELEGRAM

    @pytest.mark.slow
    def test_whenever_it_dies_nothing_is_lost_and_repeats_are_marked(self) -> None:
        super().test_whenever_it_dies_nothing_is_lost_and_repeats_are_marked()

    @asynccontextmanager
    async def emulator(self) -> AsyncIterator[Emulator]:
        async with TelegramServer(limits=None, clock=FastClock(pace=10.0)) as server:
            yield Telegram(server)
            assert server.violations == []


class TestSlack(AdapterSuite):
    platform = SLACK

    @pytest.mark.slow
    def test_whenever_it_dies_nothing_is_lost_and_repeats_are_marked(self) -> None:
        super().test_whenever_it_dies_nothing_is_lost_and_repeats_are_marked()

    @asynccontextmanager
    async def emulator(self) -> AsyncIterator[Emulator]:
        async with SlackServer(limited=False, clock=FastClock(pace=10.0)) as server:
            server.settings.retries = (1.0,) * 60
            yield Slack(server)
            assert [str(each) for each in server.violations] == []


class TestIrc(test_irc.TestIrc):
    """The example's own tests, in less time."""

    @asynccontextmanager
    async def emulator(self) -> AsyncIterator[Emulator]:
        async with super().emulator() as emulator:
            emulator.clock = FastClock(pace=10.0)
            yield emulator


# -- who breaks a promise is found -----------------------------------------------------------------


class _Hurried:
    """Tells Telegram of updates that are not stored yet."""

    async def take(self, updates: Any) -> bool:
        self.storing = asyncio.get_running_loop().create_task(Receiver.store(self, updates))  # type: ignore[arg-type]
        return True


def _with_other_ids(line: Any, **how: Any) -> Any:
    said = _INBOUND(line, **how)
    return said and replace(said, event_id=how["new_id"])


async def _forgetting(self: Any, heard: Any, accept: Any) -> None:
    while said := await heard.get():
        with suppress(StoreUnavailable):
            await accept([said])


async def _once(self: Any, heard: Any) -> None:
    await self._connected(heard, Backoff(1.0, 1.0))
    await asyncio.Event().wait()


def _of_anna(self: Any, kind: str, payload: Any) -> Any:
    if kind == "interactive":
        payload = payload | {"user": {"id": Slack.anna}}
    return _HEARD(self, kind, payload)


async def _anew(self: SlackBot, outbound: Outbound, platform_message_id: str) -> None:
    await self.send(outbound)


_INBOUND, _LINES, _HEARD = legato_irc.codec.inbound, legato_irc.codec.lines, SlackBot._heard
FAULTS = [
    (TestTelegram, "stored_before", Receiver, "take", _Hurried.take, "told of a message before"),
    (TestIrc, "repeated_event", legato_irc.codec, "inbound", _with_other_ids, "shown twice|event ids"),
    (
        TestIrc,
        "long_answer",
        legato_irc.codec,
        "lines",
        lambda text: islice(_LINES(text), 3),
        "lost the words",
    ),
    (TestIrc, "store_that_is_away", Irc, "_hand_over", _forgetting, "was not handed over again"),
    (TestIrc, "connection_that_breaks", Irc, "_stay_connected", _once, "the adapter heard nothing"),
    (TestIrc, "stranger", Irc, "limits", Limits(trusted=True), "a stranger"),
    (TestSlack, "grows", SlackBot, "edit", _anew, "stands in . messages"),
    (TestSlack, "button", SlackBot, "_heard", _of_anna, "a stranger's press counted"),
]


@pytest.mark.parametrize(
    "fault", [pytest.param(each, id=each[1], marks=[pytest.mark.slow] * (at > 2)) for at, each in enumerate(FAULTS)]
)
def test_who_breaks_a_promise_is_found(monkeypatch: pytest.MonkeyPatch, fault: Any) -> None:
    suite, test, where, name, broken, told = fault
    monkeypatch.setattr(where, name, broken)
    monkeypatch.setattr(suite, "patience", 3.0)
    (story,) = [getattr(suite(), each) for each in dir(suite) if each.startswith("test_") and test in each]
    with pytest.raises(AssertionError, match=told):
        story()
