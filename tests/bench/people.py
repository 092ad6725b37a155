"""A platform and a person in its chats, as a process of their own: `python -m tests.bench.people slack`.

It prints where the platform is. For each line `CHATS EACH` of its input the person says so many things in each of these
chats, each once the one before is answered, and it prints the seconds that all of it took.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from tests.bench.telegram_people import MOST
from tests.bench.world import REPLY, said
from tests.emulators import discord, slack, whatsapp

_KEEP: Final = 2_000  # calls that the journals keep


@dataclass(frozen=True, slots=True, kw_only=True)
class Town:
    """Where people talk with the bot. `told`: how it is reached; `say` says the text in a chat, `answers` counts those
    that came there; `connected`: the bot listens."""

    server: Any
    told: dict[str, str]
    chats: Sequence[Any]
    say: Callable[[Any, str], object]
    answers: Callable[[Any], int]
    connected: Callable[[], bool]

    async def talk(self, chats: Sequence[Any], each: int) -> float:
        """The seconds that it took."""
        start = time.perf_counter()
        for number in range(each):
            wanted = [self.answers(chat) + 1 for chat in chats]
            for chat in chats:
                self.say(chat, said(number))
            await self.server.until(partial(self._are_answered, chats, wanted))
        return time.perf_counter() - start

    def _are_answered(self, chats: Sequence[Any], wanted: Sequence[int]) -> bool:
        return all(self.answers(chat) >= most for chat, most in zip(chats, wanted, strict=True))


@asynccontextmanager
async def _discord() -> AsyncIterator[Town]:
    settings = discord.Settings(identify_every=0)
    async with discord.DiscordServer(settings, limits=None, keep=_KEEP) as server:
        person = server.people.person("Anna")
        guild = server.people.guild("Choir", person)
        yield Town(
            server=server,
            told={"base_url": server.api_url, "token": server.token},
            chats=[server.people.channel(guild, f"c{number}") for number in range(MOST)],
            say=lambda channel, text: server.people.say(channel, person, text),
            answers=lambda channel: sum(each.content == REPLY for each in channel.messages.values()),
            connected=lambda: server.connected,
        )


@asynccontextmanager
async def _slack() -> AsyncIterator[Town]:
    async with slack.SlackServer(limited=False, keep=_KEEP) as server:
        person = server.people.person("Anna")
        yield Town(
            server=server,
            told={"base_url": server.api_url, "token": f"{server.settings.token} {server.settings.app_token}"},
            chats=[server.people.channel(f"c{number}", person) for number in range(MOST)],
            say=lambda channel, text: server.people.say(channel, person, text),
            answers=lambda channel: sum(each.visible == REPLY for each in channel.messages),
            connected=lambda: server.connected,
        )


@asynccontextmanager
async def _whatsapp() -> AsyncIterator[Town]:
    async with whatsapp.WhatsAppServer(limited=False, keep=_KEEP) as server:
        given, messages = server.settings, _Counted()
        server.world.messages = messages
        yield Town(
            server=server,
            told={"base_url": server.api_url, "token": f"{given.token} {given.secret} {given.numbers[0]}"},
            chats=[server.person(f"Anna {number}") for number in range(MOST)],
            say=server.say,
            answers=lambda person: messages.answers[person.number],
            connected=lambda: bool(given.callback_url and given.subscribed),
        )


class _Counted(list[whatsapp.Message]):
    """All messages of WhatsApp, with the number of the answers to each person."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = Counter[str]()

    def append(self, message: whatsapp.Message) -> None:
        super().append(message)
        self.answers[message.person.number] += message.by_bot and message.text == REPLY


TOWNS: Final[dict[str, Callable[[], AbstractAsyncContextManager[Town]]]] = {
    "discord": _discord,
    "slack": _slack,
    "whatsapp": _whatsapp,
}


async def _serve(name: str) -> None:
    async with TOWNS[name]() as town:
        print(json.dumps(town.told), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            count, each = map(int, line.split())
            await town.server.until(town.connected)
            seconds = await town.talk(town.chats[:count], each)
            print(json.dumps({"seconds": seconds, "refused": 0}), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
