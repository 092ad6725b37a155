"""Telegram and its people, as a process of their own: each line "CHATS EACH" is a round, told by one line of JSON.

In a round CHATS people each say EACH things, one after the answer to the last; its seconds are from the first message
to the last answer.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from tests.bench.world import said
from tests.emulators.journal import Journal
from tests.emulators.telegram import Limits, TelegramServer, User

MOST: Final = 200  # people


class Replies:
    """The replies in a journal, from now on."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._read = journal.calls[-1].number if journal.calls else 0

    def since(self) -> Iterator[str]:
        """The chats of the messages that were shown since the last look, up to the first call that is not over."""
        new = list(takewhile(lambda call: call.number > self._read, reversed(self._journal.calls)))
        for call in reversed(new):
            if call.method != "getUpdates" and not call.status:
                return
            self._read = call.number
            if call.method == "sendMessage" and call.done:
                yield call.chat_id


class _Round:
    """Each person says the next thing when the last was answered."""

    def __init__(self, telegram: TelegramServer, people: list[User], each: int) -> None:
        self._telegram = telegram
        self._left = {str(person.id): each for person in people}
        self._people = {str(person.id): person for person in people}
        self._replies = Replies(telegram.journal)

    async def talk(self) -> float:
        """The seconds that it took."""
        start = time.perf_counter()
        for name in list(self._people):
            self._say(name)
        while self._left:
            await self._telegram.journal.change()
            for name in self._replies.since():
                self._answered(name)
        return time.perf_counter() - start

    def _say(self, name: str) -> None:
        person = self._people[name]
        self._telegram.people.say(self._telegram.people.private(person), person, said(self._left[name]))

    def _answered(self, name: str) -> None:
        self._left[name] -= 1
        if self._left[name]:
            self._say(name)
        else:
            del self._left[name]


async def talk(telegram: TelegramServer, people: list[User], each: int) -> float:
    """The seconds in which they said so many things each and were answered."""
    return await _Round(telegram, people, each).talk()


async def _serve(*, limited: bool) -> None:
    async with TelegramServer(limits=Limits() if limited else None, keep=2_000) as telegram:
        people = [telegram.people.person(f"P{number}") for number in range(MOST)]
        print(json.dumps({"base_url": telegram.base_url, "token": telegram.token}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            chats, each = map(int, line.split())
            seconds = await talk(telegram, people[:chats], each)
            refused = sum(call.status == 429 for call in telegram.journal.calls)
            print(json.dumps({"seconds": seconds, "refused": refused}), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve(limited=sys.argv[1] == "limited"))
