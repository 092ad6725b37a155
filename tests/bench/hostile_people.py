"""Telegram with twenty people who wait for answers, beside those who mean harm: a process of its own.

Each line on stdin is a round, told by one line of JSON:
`flood SECONDS RATE`: ten members of a group mention the bot, RATE messages a second together.
`calm SECONDS`: nobody does.
`steady SECONDS RATE`: nobody does, and the people say RATE things a second together, answered or not.
"waits" are the seconds until each answer, "calls" those of Telegram's calls of a webhook, "work" the CPU seconds that
the gateway, which started this process, worked during each of them: for others, too, that the call waited for.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections import deque
from contextlib import suppress
from functools import partial
from itertools import cycle
from typing import Final

from tests.bench.telegram_people import Replies
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
        self._asked: dict[str, deque[float]] = {}  # when each asked what is not answered
        self._replies = Replies(telegram.journal)
        self._to_ask = 0
        self.waits: list[float] = []

    async def talk(self, seconds: float) -> None:
        """Talk for so long; those who still wait at the end have waited at least so long."""
        self._begin()
        end = time.perf_counter() + seconds
        for person in self._people:
            self._ask(person)
        await self._heard(end, again=True)

    async def talk_steadily(self, seconds: float, rate: int) -> None:
        """The same, one after the other at this rate."""
        self._begin()
        begun, people = time.perf_counter(), cycle(self._people)
        self._to_ask = int(seconds * rate)
        heard = asyncio.create_task(self._heard(begun + seconds, again=False))
        for number in range(self._to_ask):
            await asyncio.sleep(begun + number / rate - time.perf_counter())
            self._to_ask -= 1
            self._ask(next(people))
        await heard

    def _begin(self) -> None:
        self._replies = Replies(self._telegram.journal)
        self.waits = []

    async def _heard(self, end: float, *, again: bool) -> None:
        """Note answers, as long as there is patience for them. Until the end who was answered asks `again`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(end - time.perf_counter() + _PATIENCE):
                while self._asked or self._to_ask:
                    await self._telegram.journal.change()
                    self._note(again=again and time.perf_counter() < end)
        self.waits += [time.perf_counter() - asked for asking in self._asked.values() for asked in asking]
        self._asked.clear()

    def _ask(self, person: User) -> None:
        self._asked.setdefault(str(person.id), deque()).append(time.perf_counter())
        self._telegram.people.say(self._telegram.people.private(person), person, said(len(self.waits)))

    def _note(self, *, again: bool) -> None:
        for chat in self._replies.since():
            asked = self._asked.get(chat)
            if not asked:
                continue
            self.waits.append(time.perf_counter() - asked.popleft())
            if not asked:
                del self._asked[chat]
            if again:
                self._ask(next(person for person in self._people if str(person.id) == chat))


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
        telegram.cloud.webhook.work = partial(_work_of, os.getppid())
        waiting = _Waiting(telegram)
        members = [telegram.people.person(f"M{number}") for number in range(MEMBERS)]
        telegram.people.group("Crowd", *members)
        print(json.dumps({"base_url": telegram.base_url, "token": telegram.token}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            kind, seconds, *numbers = line.split()
            telegram.cloud.webhook.took.clear()
            written = await _round(telegram, waiting, members, kind, float(seconds), *map(int, numbers))
            calls, work = zip(*telegram.cloud.webhook.took, strict=True) if telegram.cloud.webhook.took else ((), ())
            print(json.dumps({"waits": waiting.waits, "written": written, "calls": calls, "work": work}), flush=True)


def _work_of(process: int) -> float:
    """CPU seconds of another process; 0.0 where the system does not tell."""
    return time.clock_gettime((~process << 3) | 2) if sys.platform == "linux" else 0.0  # see clock_getcpuclockid(3)


async def _round(
    telegram: TelegramServer, waiting: _Waiting, members: list[User], kind: str, seconds: float, number: int = 0
) -> int:
    if kind == "flood":
        written, _ = await asyncio.gather(_flood(telegram, members, seconds, number), waiting.talk(seconds))
        return written
    await (waiting.talk_steadily(seconds, number) if kind == "steady" else waiting.talk(seconds))
    return 0


if __name__ == "__main__":
    asyncio.run(_serve())
