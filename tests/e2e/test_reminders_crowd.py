"""A hundred reminders in a group on a platform that shows twenty messages a minute there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from gateway.domain.adapter import Limits, Rate
from gateway.domain.chat import ChatAddress, SessionKey, Source
from gateway.domain.reminder import Reminder, ReminderKind, ReminderRules
from tests.support.fakes import ManualClock
from tests.support.gateway import FakeAdapter, Live, config_in, running

START = 1_790_000_000.0
MANY = 100


class Group(FakeAdapter):
    """Twenty messages a minute in each chat."""

    account = "bot"

    def __init__(self) -> None:
        super().__init__(limits=Limits(trusted=True, text_units=4_096))

    def rates(self, to: ChatAddress) -> Sequence[Rate]:
        return [Rate(bucket=f"chat {to.chat}", most=20, seconds=60.0)]


def every_minute(number: int, kind: ReminderKind = "say") -> Reminder:
    """One of Anna's."""
    source = Source(platform="fake", chat="g", chat_type="group", user="anna", user_name="Anna")
    return Reminder(
        id=f"r{number}",
        key=SessionKey(platform="fake", chat="g", user="anna"),
        source=source,
        kind=kind,
        text=f"glass {number}.",
        zone="UTC",
        start="2026-09-21T14:14:00",
        rule="1 minute",
        due_at=START + 60,
        settled_until=START,
        token="t",
        made_by="e",
        made_at=START,
    )


async def a_second(live: Live, clock: ManualClock) -> None:
    """Let a second pass, and look for what is due."""
    await live.store.status()
    await clock.advance(1.0)
    await live.gateway.people.firing.fire_due()
    await live.store.status()


@pytest.mark.parametrize("kind", ["say", pytest.param("ask", marks=pytest.mark.slow)])
async def test_many_reminders_of_one_do_not_hold_up_the_answer_of_another(tmp_path: Path, kind: ReminderKind) -> None:
    clock, adapter = ManualClock(START), Group()
    async with running(tmp_path, clock=clock, config=config_in(tmp_path), adapter=adapter) as live:
        await live.ask("hello")  # the first turn of a process loads the vocabulary, which takes no time of this clock
        for number in range(MANY):
            assert await live.store.add_reminder(every_minute(number, kind), MANY, MANY) is not None
        waiting, took, event, asked_at = 0, [], "", 0
        for second in range(210):
            await a_second(live, clock)
            waiting = max(waiting, (await live.store.status()).unsent)
            if second % 60 == 30 and second < 180:
                event, asked_at = await live.tell("hello", chat="g", user="bob", chat_type="group"), second
            if event and adapter.answer_to(event):
                took.append(second - asked_at)
                event = ""
        assert len(took) == 3
        # At worst until the group may be shown more, half a minute later; the threads of the store may need some steps
        # of a second each.
        assert max(took) <= (15 if kind == "say" else 35)
        assert waiting < 10


async def test_no_reminder_of_many_is_lost_without_a_word(tmp_path: Path) -> None:
    clock, adapter = ManualClock(START), Group()
    async with running(tmp_path, clock=clock, config=config_in(tmp_path), adapter=adapter) as live:
        for number in range(MANY):
            await live.store.add_reminder(every_minute(number), MANY, MANY)
        for _ in range(300):
            await a_second(live, clock)
        told: Counter[str] = Counter()
        for text in adapter.shown("g", "reminder"):
            for line in text.splitlines():
                if found := re.search(r"(glass \d+\.)(?:.*?(\d+) earlier)?", line):
                    told[found[1]] += 1 + int(found[2] or 0)
        assert len(told) == MANY
        assert min(told.values()) >= 4
        assert max(len(text) for text in adapter.shown("g", "reminder")) <= 4_096


async def test_a_full_chat_is_told_from_a_person_who_has_too_many(tmp_path: Path) -> None:
    rules = ReminderRules(per_person=2, per_chat=2)
    async with running(tmp_path, config=config_in(tmp_path, reminders=rules)) as live:
        for user in ("anna", "bob"):
            await live.ask("/remind in 5 minutes tea", user=user, chat="g", chat_type="group")
        full = await live.ask("/remind in 5 minutes tea", user="anna", chat="g", chat_type="group")
        assert full.startswith("2 reminders are waiting here")


async def test_the_caps_are_said_in_plain_sentences(tmp_path: Path) -> None:
    rules = ReminderRules(per_person=2, per_chat=3)
    async with running(tmp_path, config=config_in(tmp_path, reminders=rules)) as live:
        often = await live.ask("/remind every 4 minutes tea")
        assert often == "This is too often. Leave at least 5 minutes between two times."
        group = {"chat": "g", "chat_type": "group"}
        for user in ("anna", "anna", "bob"):
            assert "I will remind you of this" in await live.ask("/remind every 5 minutes tea", user=user, **group)
        assert "You already have 2 reminders here" in await live.ask("/remind in 5 minutes tea", user="anna", **group)
        full = await live.ask("/remind in 5 minutes tea", user="bob", **group)
        assert (
            full == "3 reminders are waiting here, and I cannot keep more. Try again when some are over or cancelled."
        )
