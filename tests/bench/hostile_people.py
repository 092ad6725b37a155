"""Telegram with twenty people who wait for answers, beside those who mean harm: a process of its own.

Each line on stdin is a round, told by one line of JSON:
`flood SECONDS RATE`: ten members of a group mention the bot, RATE messages a second together.
`calm SECONDS`: nobody does.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Iterator
from contextlib import suppress
from typing import Final

from tests.bench.world import said
from tests.emulators.telegram import TelegramServer, User

PEOPLE: Final = 20
MEMBERS: Final = 10
_PATIENCE: Final = 30.0  # seconds for one answer; after that it counts as so long
_TICKS: Final = 50  # a second


class _Waiting:
    """The people who wait: each says the next thing when the last was answered."""

    def __init__(self, telegram: TelegramServer) -> None:
        self._telegram = telegram
        self._people = [telegram.people.person(f"P{number}") for number in range(PEOPLE)]
        self._asked: dict[str, float] = {}
        self._read = 0
        self.waits: list[float] = []

    async def talk(self, seconds: float) -> None:
        """Talk for so long; those who still wait at the end have waited at least so long."""
        calls = self._telegram.journal.calls
        self._read = calls[-1].number if calls else 0
        self.waits, end = [], time.perf_counter() + seconds
        for person in self._people:
            self._ask(person)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds + _PATIENCE):
                while self._asked:
                    await self._telegram.journal.change()
                    self._note(again=time.perf_counter() < end)
        self.waits += [time.perf_counter() - asked for asked in self._asked.values()]
        self._asked.clear()

    def _ask(self, person: User) -> None:
        self._asked[str(person.id)] = time.perf_counter()
        self._telegram.people.say(self._telegram.people.private(person), person, said(len(self.waits)))

    def _note(self, *, again: bool) -> None:
        for call in self._over():
            asked = self._asked.pop(call, None)
            if asked is None:
                continue
            self.waits.append(time.perf_counter() - asked)
            if again:
                self._ask(next(person for person in self._people if str(person.id) == call))

    def _over(self) -> Iterator[str]:
        """The chats of the messages that were shown since the last look."""
        new = []
        for call in reversed(self._telegram.journal.calls):
            if call.number <= self._read:
                break
            new.append(call)
        for call in reversed(new):
            if call.method != "getUpdates" and not call.status:
                return
            self._read = call.number
            if call.method == "sendMessage" and call.done:
                yield call.chat_id


async def _flood(telegram: TelegramServer, members: list[User], seconds: float, rate: int) -> int:
    """Write messages at this rate, and return their number."""
    group = next(chat for chat in telegram.cloud.world.chats.values() if chat.title == "Crowd")
    begun, written = time.perf_counter(), 0
    while (gone := time.perf_counter() - begun) < seconds:
        while written < gone * rate:
            member = members[written % len(members)]
            telegram.people.say(group, member, f"@{telegram.cloud.world.bot.username} {said(written)}")
            written += 1
        await asyncio.sleep(1 / _TICKS)
    return written


async def _serve() -> None:
    async with TelegramServer(limits=None, keep=20_000) as telegram:
        waiting = _Waiting(telegram)
        members = [telegram.people.person(f"M{number}") for number in range(MEMBERS)]
        telegram.people.group("Crowd", *members)
        print(json.dumps({"base_url": telegram.base_url, "token": telegram.token}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            kind, seconds, *numbers = line.split()
            written = await _round(telegram, waiting, members, kind, float(seconds), *map(int, numbers))
            print(json.dumps({"waits": waiting.waits, "written": written}), flush=True)


async def _round(
    telegram: TelegramServer, waiting: _Waiting, members: list[User], kind: str, seconds: float, number: int = 0
) -> int:
    def talk() -> Awaitable[None]:
        return waiting.talk(seconds)

    if kind == "flood":
        written, _ = await asyncio.gather(_flood(telegram, members, seconds, number), talk())
        return written
    await talk()
    return 0


if __name__ == "__main__":
    asyncio.run(_serve())
