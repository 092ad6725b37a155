"""A reply while it grows: what is shown of it, what is noted, and when it is given up."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from gateway.delivery.drafts import FIRST_LOOK, Draft
from gateway.delivery.pacing import Pacing
from gateway.domain.adapter import Limits, Rate
from gateway.domain.chat import ChatAddress, Inbound, Outbound, SessionKey, Source
from gateway.runtime.aside import at_once
from gateway.runtime.errors import Ambiguous, ChatGone, DeliveryRefused, RateLimited, SessionConflict
from gateway.runtime.tasks import Background, Later
from gateway.store.records import InboxItem, Lease
from tests.support.fakes import ManualClock
from tests.support.model import Gate

KEY, TO = SessionKey(platform="test", chat="c"), ChatAddress(platform="test", chat="c")


class World:
    """A platform that edits, and the store behind it."""

    name = "test"
    account = "bot"
    limits = Limits(
        text_units=10, split_reply=lambda text: [text[at : at + 10] for at in range(0, len(text), 10)] or [""]
    )

    def __init__(self, clock) -> None:
        self.clock = clock
        self.draft = None  # the reply's
        self.silent_until = 0.0
        self.taken = []  # what the last call counted against
        self.shown = []
        self.noted = []
        self.held = []
        self.troubles = []
        self.gone = None  # why the chat is closed
        self.known = None  # the message of the row, if an earlier process showed one
        self.gate = None
        self.unsent = 0  # rows of the chat that are still to be shown
        self.crowded = []  # the same, after each of the next waits for a moment

    async def grows(self, text, seconds):
        """The reply has come so far, and for so long."""
        self.draft.show(text)
        await self.clock.advance(seconds)

    async def has_unsent(self, to):
        return self.unsent > 0

    def rates(self, to):
        return [Rate(bucket="chat c", most=1, seconds=1.0)]

    def draft_rates(self, to):
        return [*self.rates(to), Rate(bucket="drafts", most=1, seconds=2.0)]

    async def closed(self, to):
        return self.gone

    async def send(self, outbound):
        if self.troubles:
            raise self.troubles.pop(0)
        self.shown.append(("sent", outbound.text))
        if self.gate:
            await self.gate.pass_through()
        return "m1"

    async def edit(self, outbound, platform_message_id):
        self.shown.append((platform_message_id, outbound.text))

    async def take(self, account, ticket, rates):
        self.taken = [rate.bucket for rate in rates]
        if self.crowded:
            self.unsent = self.crowded.pop(0)
        return 0.0

    async def resting(self, account, bucket):
        return max(0.0, self.silent_until - self.clock.monotonic())

    async def hold_off(self, account, bucket, seconds):
        self.held.append((account, bucket, seconds))
        self.silent_until = self.clock.monotonic() + seconds

    async def open_reply(self, lease, item, row):
        if isinstance(self.known, Exception):
            raise self.known
        return Outbound(id=row.id, key=KEY, to=TO, kind="reply", text="", platform_message_id=self.known)

    async def note_streamed(self, outbound_id, platform_message_id):
        self.noted.append((outbound_id, platform_message_id))


class Previewing(World):
    """A platform that shows previews, too, until it says that it has none."""

    preview_seconds = 30.0

    def __init__(self, clock) -> None:
        super().__init__(clock)
        self.has_previews = True

    def preview_rates(self, to):
        return [Rate(bucket="previews", most=1, seconds=2.0)] if self.has_previews else None

    async def preview(self, outbound):
        if self.troubles:
            self.has_previews = not isinstance(self.troubles[0], DeliveryRefused)
            raise self.troubles.pop(0)
        self.shown.append(("preview", outbound.text))
        if self.gate:
            await self.gate.pass_through()


@pytest.fixture
async def world():
    async with drafted(World) as made:
        yield made


@pytest.fixture
async def previews():
    async with drafted(Previewing) as made:
        yield made


@asynccontextmanager
async def drafted(kind):
    """A world, and the draft of a reply in it."""
    jobs, clock = Background(), ManualClock()
    made = kind(clock)
    inbound = Inbound(event_id="e", source=Source(platform="test", chat="c", chat_type="direct", user="u"), text="hi")
    draft = Draft(
        editor=made,
        previewer=made if isinstance(made, Previewing) else None,
        store=made,
        pacing=Pacing(store=made, clock=clock, rated={"test": made}),
        clock=clock,
        lease=Lease(key=KEY, worker="w", fence=1),
        item=InboxItem(id="1", key=KEY, inbound=inbound, attempts=1, accepted_at=0.0),
        row=Outbound(id="o1", key=KEY, to=TO, kind="reply", text=""),
        aside=at_once,
    )
    made.draft = draft
    Later(jobs, clock, FIRST_LOOK).call("draft", lambda: jobs.start(draft.run(), name="draft"))
    yield made
    await jobs.aclose()


async def test_its_message_waits_for_all_that_the_chat_is_still_to_be_shown(world):
    world.unsent = 3
    await world.grows("Hello", 30.0)
    assert world.shown == world.taken == []
    world.unsent = 0
    await world.clock.advance(2.0)
    assert world.shown == [("sent", "Hello …")]
    world.unsent = 1  # what was emitted since stands below it
    await world.grows("Hello you", 2.0)
    assert world.shown[1:] == [("m1", "Hello you …")]


async def test_it_looks_again_when_its_moment_came(world):
    world.crowded = [1, 1, 0]  # rows of the chat that are there after each wait for a moment
    await world.grows("Hello", 5.0)
    assert world.crowded == [1, 0]
    assert world.shown == []
    world.unsent = 0
    await world.clock.advance(5.0)
    assert world.crowded == [0]
    assert world.shown == []
    world.unsent = 0
    await world.clock.advance(5.0)
    assert world.shown == [("sent", "Hello …")]


async def test_a_preview_waits_for_nothing_it_is_no_message(previews):
    previews.unsent = 3
    await previews.grows("Hello", 2.0)
    assert previews.shown == [("preview", "Hello")]


async def test_a_reply_that_ends_while_others_are_still_to_be_shown_was_never_shown_growing(world):
    world.unsent = 1
    await world.grows("Hello", 5.0)
    await world.draft.end()
    world.unsent = 0
    await world.clock.advance(5.0)
    assert world.shown == []


async def test_it_is_sent_once_noted_and_edited_from_then_on(world):
    await world.grows("one", 0.5)
    assert world.shown == []  # an answer that is ready by now is shown once
    await world.clock.advance(0.5)
    await world.grows("one two ", 0.1)
    assert world.shown == [("sent", "one …"), ("m1", "one two …")]
    assert world.noted == [("o1", "m1")]


async def test_another_answer_takes_the_place_of_one_that_broke_off(world):
    await world.grows("0123456789abc", 1)
    await world.grows("anew ", 1)
    assert world.shown == [("sent", "0123456789"), ("m1", "anew …")]


async def test_of_a_long_reply_only_the_beginning_is_looked_at_and_that_once(world):
    looked_at = []

    def split(text):
        looked_at.append(len(text))
        return [text[:10], text[10:]]

    world.limits = Limits(text_units=10, split_reply=split)
    for length in (1_000, 2_000, 3_000):
        await world.grows("0123456789" * (length // 10), 1)
    assert world.shown == [("sent", "0123456789")]
    assert looked_at == [20]


async def test_the_message_of_a_turn_that_a_crash_cut_is_taken_up(world):
    world.known = "m7"
    await world.grows("again", 1)
    assert world.shown == [("m7", "again …")]


async def test_its_end_waits_for_the_call_on_its_way_and_for_nothing_else(world):
    world.gate = Gate()
    await world.grows("one", 1)
    ending = asyncio.create_task(world.draft.end())
    await world.clock.settle()
    assert not ending.done()
    world.gate.open()
    await ending
    assert world.noted == [("o1", "m1")]
    await world.grows("one two", 5)
    assert len(world.shown) == 1


async def test_an_end_before_anything_was_shown_shows_nothing(world):
    world.draft.show("one")
    await world.draft.end()
    await world.clock.advance(5)
    assert world.shown == []


@pytest.mark.parametrize("error", [Ambiguous("lost"), ChatGone("blocked"), RateLimited("slowly", retry_after=9.0)])
async def test_what_fails_is_given_up_and_silence_is_told_to_all(world, error):
    world.troubles = [error]
    await world.grows("one", 1)
    await world.grows("one two", 9)
    assert world.shown == []
    assert world.noted == ([(world.draft.row.id, None)] if isinstance(error, Ambiguous) else [])
    assert world.held == ([("test:bot", "chat c", 9.0)] if isinstance(error, RateLimited) else [])
    await world.draft.end()


async def test_a_chat_that_is_closed_is_shown_no_draft(world):
    world.gone = "blocked"
    await world.grows("one", 9)
    assert world.shown == []
    await world.draft.end()


async def test_who_lost_the_lane_shows_nothing(world):
    world.known = SessionConflict("another runs it")
    await world.grows("one", 1)
    assert world.shown == []
    await world.draft.end()


# -- previews -------------------------------------------------------------------------------------


async def test_a_preview_counts_against_no_limit_of_messages_and_leaves_no_message(previews):
    await previews.grows("one", 1)
    await previews.grows("one two ", 1)
    assert previews.shown == [("preview", "one"), ("preview", "one two")]
    assert previews.taken == ["previews"]
    assert previews.noted == []
    await previews.draft.end()


async def test_a_message_that_is_there_already_is_edited(previews):
    previews.known = "m7"  # from a time when replies grew by edits
    await previews.grows("again", 1)
    assert previews.shown == [("m7", "again …")]
    await previews.draft.end()


async def test_where_previews_are_refused_the_same_reply_goes_on_by_edits(previews):
    previews.troubles = [DeliveryRefused("there is no such thing here")]
    await previews.grows("one", 1)
    await previews.grows("one two", 60)
    assert previews.shown == [("sent", "one …"), ("m1", "one two …")]
    await previews.draft.end()


async def test_a_preview_that_is_lost_is_followed_by_the_next(previews):
    previews.troubles = [Ambiguous("lost")]
    await previews.grows("one", 1)
    assert previews.shown == []
    await previews.grows("one two", 1)
    assert previews.shown == [("preview", "one two")]
    await previews.draft.end()


async def test_previews_go_on_when_the_silence_is_over_and_not_before(previews):
    previews.troubles = [RateLimited("slowly", retry_after=9.0)]
    await previews.grows("one", 1)
    assert previews.held == [("test:bot", "chat c", 9.0)]
    await previews.grows("one two", 7.9)
    assert previews.shown == []
    await previews.clock.advance(1.0)
    assert previews.shown == [("preview", "one two")]
    await previews.draft.end()


async def test_the_silence_that_another_call_was_asked_for_holds_previews_too(previews):
    previews.silent_until = previews.clock.monotonic() + 9.0
    await previews.grows("one", 8)
    assert previews.shown == []
    await previews.draft.end()  # which waits for no silence


async def test_a_preview_is_shown_again_before_it_fades(previews):
    await previews.grows("one", 1)
    await previews.clock.advance(15)
    assert len(previews.shown) == 1
    await previews.clock.advance(6)
    await previews.clock.advance(21)
    assert previews.shown == 3 * [("preview", "one")]
    previews.draft.show("0123456789abc")
    for _ in range(4):  # of a text that grows beyond what one message holds, the same is to be seen
        await previews.clock.advance(6)
        await previews.grows("0123456789abc...", 1)
    assert previews.shown[3:] == 2 * [("preview", "0123456789")]
    await previews.draft.end()


async def test_a_finished_reply_waits_for_its_preview_but_not_for_long(previews):
    previews.gate = Gate()
    await previews.grows("one", 1)
    ending = asyncio.create_task(previews.draft.end())
    await previews.clock.advance(0.9)
    assert not ending.done()
    await previews.clock.advance(0.2)
    assert ending.done()
    previews.gate.open()


async def test_a_platform_may_show_nothing_of_an_unfinished_reply(world):
    world.draft_rates = lambda to: None
    await world.grows("one", 9)
    assert world.shown == []
    await world.draft.end()
