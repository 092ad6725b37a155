"""A hundred answers on Telegram while a third of the connections is reset."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from gateway.domain.turn import BUSY
from tests.emulators.faults import Disconnect, Seeded
from tests.emulators.telegram import TelegramServer
from tests.support.fast_clock import FastClock
from tests.support.telegram_live import on_telegram

PEOPLE, EACH = 50, 2


@pytest.fixture
async def telegram() -> AsyncIterator[TelegramServer]:
    async with TelegramServer(limits=None, clock=FastClock(pace=10.0)) as server:
        yield server


async def test_none_is_missing_and_none_is_there_twice_without_a_mark(tmp_path: Path, telegram: TelegramServer) -> None:
    people = [telegram.people.person(f"Person{number}") for number in range(PEOPLE)]
    chats = [telegram.people.private(person) for person in people]
    resets = (Disconnect(), Disconnect(done=True))
    telegram.faults.schedule = Seeded(7, share=0.3, among=resets, methods=("sendMessage",))
    allow = tuple(f"telegram:{person.id}" for person in people[1:])
    async with on_telegram(tmp_path, telegram, people[0], allow=allow) as bot:
        for number in range(EACH):
            for person, chat in zip(people, chats, strict=True):
                telegram.people.say(chat, person, f"question {number}")
        expected = {f"echo: question {number}" for number in range(EACH)}
        await bot.until(lambda: all(_plain(bot.shown(chat)) >= expected for chat in chats))
        await bot.quiet()
        assert {row.state for row in await bot.gateway.store.outbox(None, 1_000)} == {"sent"}
        for chat in chats:
            unmarked = [text for text in bot.shown(chat) if not text.startswith("↻")]
            assert len(unmarked) == len(set(unmarked))
            assert _plain(bot.shown(chat)) == expected
        assert any(call.fault for call in telegram.journal.of("sendMessage"))


def _plain(texts: list[str]) -> set[str]:
    return {text.removeprefix("↻ ") for text in texts} - {BUSY}
