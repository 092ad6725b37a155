"""The view of people after an outage of their platform: every message, and twice only those that the platform had
taken."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import Final

import pytest

from gateway.delivery.outbox import MAYBE_MISSING, OUTCOME_UNKNOWN, Outbox
from gateway.domain.adapter import Limits
from gateway.domain.chat import ChatAddress, SessionKey
from gateway.runtime.errors import AdapterError, Ambiguous, Disconnected
from gateway.runtime.points import ignore_points
from gateway.runtime.tasks import Background
from gateway.store.records import Sent
from tests.support.fakes import ManualClock, SequentialIds

PATIENCE: Final = 20.0  # seconds for which the client waits for an answer
TAKEN: Final = {"reset after", "hang after", "504 after"}  # what the platform has shown all the same
TROUBLES: Final = {
    "reset before": Ambiguous("reset"),
    "reset after": Ambiguous("reset"),
    "hang": Ambiguous("no answer"),
    "hang after": Ambiguous("no answer"),
    "502": AdapterError("bad gateway"),
    "504": Ambiguous("gateway time-out"),
    "504 after": Ambiguous("gateway time-out"),
    "refused": Disconnected("refused"),
}


class Platform:
    """Chats, and a way to them that is out of order from `begins` to `ends`; `deaf`: only for messages."""

    name = "test"
    limits = Limits(ambiguous_retries=1)

    def __init__(self, clock):
        self.clock = clock
        self.shown = []  # (chat, text)
        self.pings = []  # when
        self.trouble, self.begins, self.ends, self.deaf = "", 0.0, 0.0, False

    async def _fails(self):
        if not self.begins <= self.clock.monotonic() < self.ends:
            return
        if self.trouble.startswith("hang"):
            await self.clock.sleep(PATIENCE)
        raise TROUBLES[self.trouble]

    async def send(self, outbound):
        out = self.begins <= self.clock.monotonic() < self.ends
        if not out or self.trouble in TAKEN:
            self.shown.append((outbound.to.chat, outbound.text))
        await self._fails()
        return outbound.id

    async def ping(self):
        self.pings.append(self.clock.monotonic())
        if not self.deaf:
            await self._fails()


class Rows:
    """A store of rows, one chat after the other as the real ones keep them."""

    def __init__(self, clock):
        self.clock = clock
        self.chats = {}
        self.ended = {}  # id → how

    def put(self, row):
        self.chats.setdefault(row.to.chat, []).append(row)

    def owns(self, row):
        return True

    def _head(self, row_id):
        return next(rows for rows in self.chats.values() if rows and rows[0].id == row_id)

    def _claim(self, rows):
        if not rows or rows[0].state == "sending" or rows[0].due_at > self.clock.monotonic():
            return None
        rows[0] = replace(rows[0], state="sending", attempts=rows[0].attempts + 1)
        return rows[0]

    async def mark_sent(self, outbound_id, platform_message_id):
        rows = self._head(outbound_id)
        self.ended[rows.pop(0).id] = "sent"
        return Sent(next=self._claim(rows))

    async def mark_refused(self, outbound_id, reason, instead=None, *, gone=False):
        rows = self._head(outbound_id)
        self.ended[rows.pop(0).id] = reason
        if instead is not None:
            rows.insert(0, instead)
        return Sent(next=self._claim(rows))

    async def mark_retry(self, outbound_id, seconds, *, ambiguous, anew=False, counted=True):
        rows = self._head(outbound_id)
        head, due = rows[0], self.clock.monotonic() + seconds
        attempts, doubts = head.attempts - (not counted), head.ambiguous + ambiguous
        rows[0] = replace(head, state="pending", due_at=due, attempts=attempts, ambiguous=doubts)

    async def claim_outbound(self, limit):
        return [claimed for rows in self.chats.values() if (claimed := self._claim(rows)) is not None]

    async def next_due(self):
        waiting = [rows[0].due_at for rows in self.chats.values() if rows and rows[0].state == "pending"]
        return max(0.0, min(waiting) - self.clock.monotonic()) if waiting else None


@pytest.fixture
async def world():
    """A platform, the rows for it, and a way to say something in chats."""
    clock, jobs = ManualClock(), Background()
    platform, rows = Platform(clock), Rows(clock)
    outbox = Outbox(
        store=rows,
        adapters={"test": platform},
        limits={},
        clock=clock,
        ids=SequentialIds(),
        background=jobs,
        points=ignore_points,
    )
    serving = asyncio.create_task(outbox.serve())

    async def say(*texts, chats=("a",)):
        for chat in chats:
            key, to = SessionKey(platform="test", chat=chat), ChatAddress(platform="test", chat=chat)
            for text in texts:
                (row,) = outbox.compose(key, to, "reply", text)
                rows.put(row)
        outbox.look()
        await clock.settle()

    yield clock, platform, rows, say
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    await jobs.aclose()


@pytest.mark.parametrize("seconds", [1.0, 40.0, 300.0])
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_after_an_outage_everything_is_shown(world, trouble, seconds):
    clock, platform, rows, say = world
    platform.trouble, platform.ends = trouble, seconds
    await say("one", "two", chats="abcde")
    await clock.advance(seconds + 120.0)
    assert set(rows.ended.values()) == {"sent"}
    times = Counter(platform.shown)
    assert times.keys() == {(chat, text) for chat in "abcde" for text in ("one", "two")}
    assert max(times.values()) <= (2 if trouble in TAKEN else 1)
    for chat in "abcde":
        assert list(dict.fromkeys(text for where, text in platform.shown if where == chat)) == ["one", "two"]


async def test_an_outage_in_the_midst_of_a_chat_uses_up_no_try(world):
    clock, platform, rows, say = world
    platform.trouble, platform.begins, platform.ends = "hang after", 10.0, 310.0
    for number in range(8):
        await say(f"m{number}")
        await clock.advance(5.0)
    await clock.advance(400.0)
    assert set(rows.ended.values()) == {"sent"}
    assert list(dict.fromkeys(text for _, text in platform.shown)) == [f"m{number}" for number in range(8)]


async def test_a_long_outage_is_not_asked_after_all_the_time(world):
    clock, platform, _, say = world
    platform.trouble, platform.ends = "reset before", 300.0
    await say("one", chats=[f"c{number}" for number in range(50)])
    await clock.advance(330.0)
    assert len(platform.shown) == 50
    assert len(platform.pings) < 50


async def test_what_may_be_missing_is_told_once_and_the_chat_goes_on(world):
    """The platform answers, but to nothing that it was sent."""
    clock, platform, rows, say = world
    platform.trouble, platform.ends, platform.deaf = "504", 30.0, True
    await say("one", "two")
    await clock.advance(300.0)
    assert [text for _, text in platform.shown] == [MAYBE_MISSING, "two"]
    assert list(rows.ended.values()) == [OUTCOME_UNKNOWN, "sent", "sent"]


async def test_a_sentence_about_a_trouble_is_not_repeated_for_ever(world):
    clock, platform, rows, say = world
    platform.trouble, platform.ends, platform.deaf = "504 after", 3600.0, True
    await say("one")
    await clock.advance(3600.0)
    assert Counter(text for _, text in platform.shown) == {"one": 2, MAYBE_MISSING: 6}
    assert list(rows.ended.values()) == [OUTCOME_UNKNOWN, OUTCOME_UNKNOWN]
