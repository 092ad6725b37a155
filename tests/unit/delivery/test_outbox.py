"""The outbox: what people see after an outage, no faster than a platform allows, and again only what a crash left in
doubt."""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict
from typing import Final

import pytest
from structlog.testing import capture_logs

from gateway.delivery.outbox import MAYBE_MISSING, MOST_REPEATS, OUTCOME_UNKNOWN, Outbox
from gateway.domain.adapter import Limits, Rate
from gateway.domain.chat import ChatAddress, SessionKey
from gateway.runtime.errors import AdapterError, Ambiguous, Disconnected, RateLimited, StoreError, StoreUnavailable
from gateway.runtime.metrics import Metrics
from gateway.runtime.points import ignore_points
from gateway.runtime.structs import replace
from gateway.runtime.tasks import Background
from tests.support.fakes import ManualClock, SequentialIds
from tests.support.rates import Rates

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
    account = "bot"
    limits = Limits()

    def __init__(self, clock):
        self.clock = clock
        self.shown = []  # (when, chat, text)
        self.pings = []  # when
        self.refusals = []
        self.trouble, self.begins, self.ends, self.deaf = "", 0.0, 0.0, False

    @property
    def texts(self):
        return [text for _, _, text in self.shown]

    @property
    def chats(self):
        return [chat for _, chat, _ in self.shown]

    def _is_out(self):
        return self.begins <= self.clock.monotonic() < self.ends

    async def _fails(self):
        if self._is_out():
            if self.trouble.startswith("hang"):
                await self.clock.sleep(PATIENCE)
            raise TROUBLES[self.trouble]

    async def send(self, outbound):
        if self.refusals:
            raise self.refusals.pop(0)
        if not self._is_out() or self.trouble in TAKEN:
            self.shown.append((self.clock.monotonic(), outbound.to.chat, outbound.text))
        await self._fails()
        return outbound.id

    async def ping(self):
        self.pings.append(self.clock.monotonic())
        if not self.deaf:
            await self._fails()


class Rated(Platform):
    """A platform that takes two messages in ten seconds in all, one a second in each chat."""

    def rates(self, to):
        return [Rate(bucket=f"chat {to.chat}", most=1, seconds=1.0), Rate(bucket="all", most=2, seconds=10.0)]


class Rows:
    """A store of rows, one chat after the other as the real ones keep them."""

    def __init__(self, clock):
        self.clock = clock
        self.chats = {}
        self.ended = {}  # id → how
        self.moments = Rates()
        self.troubles = []  # of the next questions for a moment
        self.put_off = defaultdict(int)
        self.failures = self.doubts = 0
        self.lost = False  # this process was taken for dead

    def put(self, row):
        self.chats.setdefault(row.to.chat, []).append(row)

    def owns(self, row):
        return not self.lost

    async def take(self, account, ticket, rates):
        if self.troubles:
            raise self.troubles.pop()
        return self.moments.take(account, ticket, rates, self.clock.monotonic())

    async def hold_off(self, account, bucket, seconds):
        self.moments.hold_off(account, bucket, self.clock.monotonic() + seconds)

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
        return self._claim(rows)

    async def mark_refused(self, outbound_id, reason, instead=None, *, gone=False, keeps=False):
        rows = self._head(outbound_id)
        self.ended[rows.pop(0).id] = reason
        if instead is not None:
            rows.insert(0, instead)
        return self._claim(rows)

    async def mark_retry(self, outbound_id, seconds, *, ambiguous, anew=False, counted=True, attempt=None):
        self.put_off[outbound_id] += 1
        self.failures += counted
        self.doubts += ambiguous
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
async def background():
    jobs = Background()
    yield jobs
    await jobs.aclose()


def outbox_on(adapter, clock, background, *, store=None):
    return Outbox(
        store=store or adapter,
        adapters={adapter.name: adapter},
        limits={},
        clock=clock,
        ids=SequentialIds(),
        background=background,
        points=ignore_points,
    )


def said(text):
    """A message's text without the mark of a repeat."""
    return text.removeprefix("↻").lstrip()


def place(chat):
    return SessionKey(platform="test", chat=chat), ChatAddress(platform="test", chat=chat)


@pytest.fixture(params=[Platform])
async def world(request, background):
    """A platform, the rows for it, and a way to say something in chats."""
    clock = ManualClock()
    platform, rows = request.param(clock), Rows(clock)
    outbox = outbox_on(platform, clock, background, store=rows)
    serving = asyncio.create_task(outbox.serve())

    async def say(*texts, chats=("a",)):
        for chat in chats:
            for text in texts:
                (row,) = outbox.compose(*place(chat), "reply", text)
                rows.put(row)
        outbox.look()
        await clock.settle()

    yield clock, platform, rows, say
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


# After an outage every message is there, and twice only those that the platform had taken


@pytest.mark.parametrize("seconds", [1.0, 40.0, 300.0])
@pytest.mark.parametrize("trouble", TROUBLES)
async def test_after_an_outage_everything_is_shown(world, trouble, seconds):
    clock, platform, rows, say = world
    platform.trouble, platform.ends = trouble, seconds
    await say("one", "two", chats="abcde")
    await clock.advance(seconds + 120.0)
    assert set(rows.ended.values()) == {"sent"}
    times = Counter((chat, text) for _, chat, text in platform.shown)
    assert {(chat, said(text)) for chat, text in times} == {(chat, text) for chat in "abcde" for text in ("one", "two")}
    assert max(times.values()) == 1
    assert len(times) <= (20 if trouble in TAKEN else 10)
    for chat in "abcde":
        assert list(dict.fromkeys(said(text) for _, where, text in platform.shown if where == chat)) == ["one", "two"]


async def test_a_chat_that_cannot_be_shown_anything_is_one_line_and_its_end_another(world):
    clock, platform, _, say = world
    platform.trouble, platform.ends = "502", 40.0
    with capture_logs() as logs:
        await say("one", "two", chats="ab")
        await clock.advance(120.0)
        await say("three", chats="ab")
        await clock.advance(10.0)
    told = [(each["event"], each["chat"], each.get("failed")) for each in logs if each["event"].startswith("delivery")]
    assert sorted(told, key=lambda line: line[:2]) == [
        ("delivery_fails", "a", None),
        ("delivery_fails", "b", None),
        ("delivery_works_again", "a", 5),
        ("delivery_works_again", "b", 5),
    ]


async def test_an_outage_in_the_midst_of_a_chat_uses_up_no_try(world):
    clock, platform, rows, say = world
    platform.trouble, platform.begins, platform.ends = "hang after", 10.0, 310.0
    for number in range(8):
        await say(f"m{number}")
        await clock.advance(5.0)
    await clock.advance(400.0)
    assert set(rows.ended.values()) == {"sent"}
    assert list(dict.fromkeys(map(said, platform.texts))) == [f"m{number}" for number in range(8)]


async def test_a_long_outage_is_not_asked_after_all_the_time(world):
    clock, platform, _, say = world
    platform.trouble, platform.ends = "reset before", 300.0
    await say("one", chats=[f"c{number}" for number in range(50)])
    await clock.advance(330.0)
    assert len(platform.shown) == 50
    assert len(platform.pings) < 50


async def test_what_may_be_missing_is_repeated_with_a_mark_until_an_attempt_is_answered(world):
    """The platform answers, but to nothing that it was sent."""
    clock, platform, rows, say = world
    platform.trouble, platform.ends, platform.deaf = "504", 30.0, True
    await say("one", "# two")
    await clock.advance(300.0)
    assert platform.texts == ["↻ one", "# two"]
    platform.trouble, platform.begins, platform.ends = "504 after", clock.monotonic(), clock.monotonic() + 2.0
    await say("# three")
    await clock.advance(300.0)
    assert platform.texts[2:] == ["# three", "↻\n\n# three"]
    assert set(rows.ended.values()) == {"sent"}


async def test_what_may_be_missing_for_a_day_is_told_and_the_chat_goes_on(world):
    clock, platform, rows, say = world
    platform.trouble, platform.ends, platform.deaf = "504", 90_000.0, True
    await say("one", "two")
    await clock.advance(200_000.0)
    assert list(rows.ended.values())[:2] == [OUTCOME_UNKNOWN, "sent"]
    assert platform.texts[0] == f"↻ {MAYBE_MISSING}"


async def test_what_may_be_shown_each_time_is_not_repeated_for_ever(world):
    clock, platform, rows, say = world
    platform.trouble, platform.ends, platform.deaf = "504 after", 1_000_000.0, True
    await say("one")
    await clock.advance(1_000_000.0)
    shown = Counter(platform.texts)
    assert shown["one"] == 1
    assert shown["↻ one"] <= MOST_REPEATS
    assert OUTCOME_UNKNOWN in rows.ended.values()


class Unsteady(Platform):
    """A third of all connections is reset, before or after the platform did what it was asked."""

    async def send(self, outbound):
        fate = self.dice.random()
        if fate >= 0.15:
            self.shown.append((self.clock.monotonic(), outbound.to.chat, outbound.text))
        if fate < 0.3:
            raise Ambiguous("reset")
        return outbound.id


@pytest.mark.parametrize("world", [Unsteady], indirect=True)
@pytest.mark.parametrize("seed", range(20))
async def test_of_a_hundred_answers_none_is_missing_and_none_is_there_twice_without_a_mark(world, seed):
    clock, platform, _, say = world
    platform.dice = random.Random(seed)
    for number in range(25):
        await say(f"answer {number}", chats="abcd")
        await clock.advance(3.0)
    await clock.advance(600.0)
    times = Counter((chat, text) for _, chat, text in platform.shown)
    for chat in "abcd":
        texts = [text for _, where, text in platform.shown if where == chat]
        assert list(dict.fromkeys(map(said, texts))) == [f"answer {number}" for number in range(25)]
    assert {text: count for (_, text), count in times.items() if count > 1 and not text.startswith("↻")} == {}


# No faster than the platform allows, and silent where it asks for silence

rated = pytest.mark.parametrize("world", [Rated], indirect=True)


@rated
async def test_what_may_go_goes_at_once_and_the_rest_when_its_time_has_come(world):
    clock, platform, rows, say = world
    await say("one", chats="abcde")
    assert platform.shown == [(0.0, "a", "one"), (0.0, "b", "one")]
    await clock.advance(60)
    assert [(round(when), chat) for when, chat, _ in platform.shown[2:]] == [(10, "c"), (10, "d"), (20, "e")]
    assert set(rows.put_off.values()) == {1}
    assert rows.failures == rows.doubts == 0


@rated
async def test_a_row_waits_with_the_store_however_shortly(world):
    """A process killed with a row in hand would have to take the row for begun."""
    clock, platform, rows, say = world
    await say("one", "two")
    assert platform.shown == [(0.0, "a", "one")]
    await clock.advance(1.1)
    assert [(round(when), chat) for when, chat, _ in platform.shown] == [(0, "a"), (1, "a")]
    assert list(rows.put_off.values()) == [1]


@rated
async def test_a_row_that_may_be_another_processs_by_now_is_given_back_and_not_sent(world):
    clock, platform, rows, say = world
    rows.lost = True
    await say("one", chats="a")
    assert platform.shown == []
    rows.lost = False
    await clock.advance(1)
    assert platform.chats == ["a"]
    assert rows.failures == rows.doubts == 0


@rated
async def test_a_chat_that_must_be_silent_holds_up_no_other(world):
    clock, platform, rows, say = world
    platform.refusals = [RateLimited("slow down", retry_after=30.0)]
    await say("one", chats="ab")
    assert platform.shown == [(0.0, "b", "one")]
    await clock.advance(29)
    assert platform.chats == ["b"]
    await clock.advance(2)
    assert platform.chats == ["b", "a"]
    assert rows.failures == rows.doubts == 0  # whoever is asked to wait has not failed


@rated
async def test_a_silence_for_all_holds_up_all(world):
    clock, platform, _, say = world
    platform.refusals = [RateLimited("slow down", retry_after=30.0, everywhere=True)]
    await say("one", chats="a")
    await say("one", chats="bc")
    await clock.advance(29)
    assert platform.shown == []
    await clock.advance(12)
    assert sorted(platform.chats) == ["a", "b", "c"]


@rated
async def test_a_store_that_is_away_delays_and_makes_nothing_ambiguous(world):
    clock, platform, rows, say = world
    rows.troubles = [StoreUnavailable("away")]
    await say("one", chats="a")
    assert platform.shown == []
    await clock.advance(1)
    assert platform.chats == ["a"]
    assert rows.doubts == 0


# A crash repeats no notice, and only one line where every unmarked one comes again


class Journal:
    """An adapter and the store behind it: keeps what they were asked, and yields in between."""

    name = "test"

    def __init__(self, ambiguous_retries):
        self.limits = Limits(ambiguous_retries=ambiguous_retries)
        self.events = []

    async def send(self, outbound):
        """Show it."""
        self.events.append(("sent", outbound.to.chat))
        await asyncio.sleep(0)
        return outbound.id

    def owns(self, row: object) -> bool:
        return True

    async def mark_sent(self, outbound_id, platform_message_id):
        """Note durably that the row was shown."""
        await asyncio.sleep(0)
        self.events.append(("marked", outbound_id))


async def test_a_notice_about_an_event_has_the_same_id_every_time(clock, background):
    outbox = outbox_on(Journal(None), clock, background)

    def notice_id(text, event, kind="notice"):
        return outbox.compose(*place("a"), kind, text, answers=event)[0].id

    assert notice_id("Compressing.", "e1") == notice_id("Compressing.", "e1")
    assert notice_id("Compressing.", "e1") != notice_id("Compressing.", "e2")
    assert notice_id("Compressing.", "e1") != notice_id("Still busy.", "e1")
    assert notice_id("Answer.", "e1", "reply") != notice_id("Answer.", "e1", "reply")
    assert notice_id("Put away.", None) != notice_id("Put away.", None)


async def test_one_line_is_marked_before_the_next_is_sent_where_unmarked_ones_come_again(clock, background):
    journal = Journal(None)
    outbox = outbox_on(journal, clock, background)

    outbox.deliver([outbox.compose(*place(chat), "reply", "Hello.")[0] for chat in "abc"])
    await background.idle()

    assert [what for what, _ in journal.events] == ["sent", "marked"] * 3


async def test_other_platforms_are_sent_to_side_by_side(clock, background):
    journal = Journal(1)
    outbox = outbox_on(journal, clock, background)

    outbox.deliver([outbox.compose(*place(chat), "reply", "Hello.")[0] for chat in "abc"])
    await background.idle()

    assert [what for what, _ in journal.events[:3]] == ["sent"] * 3


async def test_a_row_whose_earlier_attempt_may_have_been_shown_counts_as_a_redelivery(clock, background):
    metrics = Metrics()
    outbox = outbox_on(Journal(None), clock, background)

    (row,) = outbox.compose(*place("a"), "reply", "Hello.")
    with metrics.counting():
        outbox.deliver([replace(row, attempts=1)])
        outbox.deliver([replace(row, attempts=2)])
    await background.idle()

    assert metrics.totals()["legato_sends_total test sent"] == 2
    assert metrics.totals()["legato_redeliveries_total test"] == 1


class Broken(Journal):
    """An adapter with a bug, before a store that cannot note it."""

    async def send(self, outbound):
        """Fail as no adapter may."""
        raise ZeroDivisionError

    async def mark_retry(self, outbound_id, seconds, *, ambiguous, anew=False, counted=True, attempt=None):
        """Fail as well."""
        raise StoreError("The row cannot be read.")


async def test_a_send_that_cannot_even_be_put_off_is_not_taken_for_one_that_runs(clock, background):
    outbox = outbox_on(Broken(1), clock, background)

    outbox.deliver(outbox.compose(*place("a"), "reply", "Hello."))
    await background.idle()

    assert outbox.in_flight == 0
