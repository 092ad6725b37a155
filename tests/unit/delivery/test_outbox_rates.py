"""The outbox sends no faster than a platform allows, and keeps the silence that it asks for."""

import asyncio
from collections import defaultdict

import pytest

from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Limits
from gateway.domain.chat import ChatAddress, SessionKey
from gateway.domain.rates import Rate
from gateway.runtime.errors import RateLimited, StoreUnavailable
from gateway.runtime.points import ignore_points
from gateway.runtime.tasks import Background
from gateway.store.records import Sent
from gateway.store.sqlite.memory import Rates
from tests.support.fakes import ManualClock, SequentialIds


class Platform:
    """An adapter with limits: two messages in ten seconds in all, one a second in each chat."""

    name = "test"
    account = "bot"
    limits = Limits()

    def __init__(self, clock):
        self.clock = clock
        self.sent = []  # (when, chat)
        self.refusals = []

    def rates(self, to):
        return [Rate(bucket=f"chat {to.chat}", most=1, seconds=1.0), Rate(bucket="all", most=2, seconds=10.0)]

    async def send(self, outbound):
        if self.refusals:
            raise self.refusals.pop(0)
        self.sent.append((self.clock.monotonic(), outbound.to.chat))
        return outbound.id


class Rows:
    """A store that keeps moments, and rows that were put off."""

    def __init__(self, clock):
        self.clock = clock
        self.rates = Rates()
        self.rows = {}
        self.due = {}
        self.put_off = defaultdict(int)
        self.failures = 0
        self.troubles = []
        self.lost = False  # this process was taken for dead

    async def take(self, account, ticket, rates):
        if self.troubles:
            raise self.troubles.pop()
        return self.rates.take(account, ticket, rates, self.clock.monotonic())

    async def hold_off(self, account, bucket, seconds):
        self.rates.hold_off(account, bucket, self.clock.monotonic() + seconds)

    def owns(self, row: object) -> bool:
        return not self.lost

    async def mark_sent(self, outbound_id, platform_message_id):
        return Sent(next=None)

    async def mark_retry(self, outbound_id, seconds, *, ambiguous, anew=False, counted=True):
        assert not ambiguous
        self.failures += counted
        self.due[outbound_id] = self.clock.monotonic() + seconds
        self.put_off[outbound_id] += 1

    async def claim_outbound(self, limit):
        ready = [row_id for row_id, due in self.due.items() if due <= self.clock.monotonic()]
        for row_id in ready:
            del self.due[row_id]
        return [self.rows[row_id] for row_id in ready]

    async def next_due(self):
        return min((due - self.clock.monotonic() for due in self.due.values()), default=None)


@pytest.fixture
async def world():
    """A platform, a store, and what gives rows to the outbox between them."""
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

    async def deliver(*chats):
        for chat in chats:
            key, to = SessionKey(platform="test", chat=chat), ChatAddress(platform="test", chat=chat)
            (row,) = outbox.compose(key, to, "reply", "hello")
            rows.rows[row.id] = row
            outbox.deliver([row])
        await clock.settle()

    yield clock, platform, rows, deliver
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    await jobs.aclose()


async def test_what_may_go_goes_at_once_and_the_rest_when_its_time_has_come(world):
    clock, platform, rows, deliver = world
    await deliver("a", "b", "c", "d", "e")
    assert platform.sent == [(0.0, "a"), (0.0, "b")]
    await clock.advance(60)
    assert [(round(when), chat) for when, chat in platform.sent[2:]] == [(10, "c"), (10, "d"), (20, "e")]
    assert set(rows.put_off.values()) == {1}
    assert rows.failures == 0


async def test_a_row_waits_with_the_store_however_shortly(world):
    """A process killed with a row in hand would have to take the row for begun."""
    clock, platform, rows, deliver = world
    await deliver("a", "a")
    assert platform.sent == [(0.0, "a")]
    await clock.advance(1.1)
    assert [(round(when), chat) for when, chat in platform.sent] == [(0, "a"), (1, "a")]
    assert list(rows.put_off.values()) == [1]


async def test_a_row_that_may_be_another_processs_by_now_is_given_back_and_not_sent(world):
    clock, platform, rows, deliver = world
    rows.lost = True
    await deliver("a")
    assert platform.sent == []
    rows.lost = False
    await clock.advance(1)
    assert [chat for _, chat in platform.sent] == ["a"]
    assert rows.failures == 0


async def test_a_chat_that_must_be_silent_holds_up_no_other(world):
    clock, platform, rows, deliver = world
    platform.refusals = [RateLimited("slow down", retry_after=30.0)]
    await deliver("a", "b")
    assert platform.sent == [(0.0, "b")]
    await clock.advance(29)
    assert [chat for _, chat in platform.sent] == ["b"]
    await clock.advance(2)
    assert [chat for _, chat in platform.sent] == ["b", "a"]
    assert rows.failures == 0  # whoever is asked to wait has not failed


async def test_a_silence_for_all_holds_up_all(world):
    clock, platform, _, deliver = world
    platform.refusals = [RateLimited("slow down", retry_after=30.0, everywhere=True)]
    await deliver("a")
    await deliver("b", "c")
    await clock.advance(29)
    assert platform.sent == []
    await clock.advance(12)
    assert sorted(chat for _, chat in platform.sent) == ["a", "b", "c"]


async def test_a_store_that_is_away_delays_and_makes_nothing_ambiguous(world):
    clock, platform, rows, deliver = world
    rows.troubles = [StoreUnavailable("away")]
    await deliver("a")
    assert platform.sent == []
    await clock.advance(1)
    assert [chat for _, chat in platform.sent] == ["a"]
