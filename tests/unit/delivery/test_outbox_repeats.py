"""The repetitions that a crash may cause: a notice has one id however often its turn runs, and where every unmarked
line comes again, only one line is unmarked at a time."""

import asyncio
from dataclasses import replace

import pytest

from gateway.delivery.outbox import Outbox
from gateway.domain.adapter import Limits
from gateway.domain.chat import ChatAddress, SessionKey
from gateway.runtime.errors import StoreError
from gateway.runtime.metrics import Metrics
from gateway.runtime.points import ignore_points
from gateway.runtime.tasks import Background
from gateway.store.records import Sent
from tests.support.fakes import SequentialIds


class Journal:
    """An adapter and the store behind it: keeps what they were asked, and yields in between."""

    name = "console"

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
        return Sent(next=None)


def outbox_on(journal, clock, background):
    return Outbox(
        store=journal,
        adapters={journal.name: journal},
        limits={},
        clock=clock,
        ids=SequentialIds(),
        background=background,
        points=ignore_points,
    )


def place(chat):
    return SessionKey(platform="console", chat=chat), ChatAddress(platform="console", chat=chat)


@pytest.fixture
async def background():
    jobs = Background()
    yield jobs
    await jobs.aclose()


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

    assert metrics.totals()["legato_sends_total console sent"] == 2
    assert metrics.totals()["legato_redeliveries_total console"] == 1


class Broken(Journal):
    """An adapter with a bug, before a store that cannot note it."""

    async def send(self, outbound):
        """Fail as no adapter may."""
        raise ZeroDivisionError

    async def mark_retry(self, outbound_id, seconds, *, ambiguous, anew=False, counted=True):
        """Fail as well."""
        raise StoreError("The row cannot be read.")


async def test_a_send_that_cannot_even_be_put_off_is_not_taken_for_one_that_runs(clock, background):
    outbox = outbox_on(Broken(1), clock, background)

    outbox.deliver(outbox.compose(*place("a"), "reply", "Hello."))
    await background.idle()

    assert outbox.in_flight == 0
