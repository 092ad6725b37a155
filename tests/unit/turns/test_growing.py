"""A reply while it grows, and the line in its place that says what the wait is for."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.agent.running import Phase, RunningTurn
from gateway.domain.chat import Outbound
from gateway.runtime.errors import AdapterError
from gateway.store.port import Store
from gateway.turns.growing import GrowingReply
from tests.support.fakes import ManualClock
from tests.support.store_kit import claimed, new_session

KNOWS = cast(Any, Mock(stored=Mock(session=new_session("s1"))))


class Growing:
    """The reply of a turn that began a moment ago, on a platform where replies grow."""

    def __init__(self, claim: Any, clock: ManualClock, *, grows: bool = True, **more: Any) -> None:
        self.clock, self.draft = clock, Mock(end=AsyncMock(), lease=claim.lease)
        self.outbox = Mock(draft=Mock(return_value=self.draft))
        self.outbox.grows.return_value, self.outbox.new_id.return_value = grows, "o2"
        source = claim.item.inbound.source
        self.turn = RunningTurn(key=claim.item.key, source=source, started_at=0.0, alive_at=0.0, end=print)
        self.reply = GrowingReply(
            item=claim.item,
            time=Mock(turn=self.turn),
            lease=claim.lease,
            id="o1",
            outbox=self.outbox,
            clock=clock,
            **more,
        )
        self.reply.begin()

    @property
    def line(self) -> str:
        """The line that stands in the place of the reply."""
        return str(self.draft.stand_in.call_args.args[0]) if self.draft.stand_in.called else ""

    def look(self) -> None:
        """The moment comes at which the words so far are shown first."""
        self.outbox.first_looks.call.call_args.args[1]()


@pytest.fixture
async def growing(store: Store, clock: ManualClock) -> Growing:
    """Nothing is said yet."""
    return Growing(await claimed(store), clock)


async def test_words_are_shown_after_a_moment_and_then_as_they_come(growing: Growing) -> None:
    await growing.reply.text("On")
    growing.draft.show.assert_not_called()
    await growing.reply.text("On Tue")
    growing.outbox.first_looks.call.assert_called_once()
    growing.look()
    await growing.reply.text("On Tuesday")
    assert [call.args[0] for call in growing.draft.show.call_args_list] == ["On Tue", "On Tuesday"]
    growing.outbox.draft.assert_called_once()
    assert growing.reply.time.alive.call_count == 3  # type: ignore[attr-defined]
    assert growing.reply.lease is None, "it is the draft's now"


async def test_where_replies_do_not_grow_nothing_is_shown_before_its_end(store: Store, clock: ManualClock) -> None:
    it = Growing(await claimed(store), clock, grows=False)
    await it.reply.text("On")
    it.reply.stand_in()
    await it.reply.end()
    assert [call[0] for call in it.outbox.mock_calls] == ["grows"]


async def test_the_next_words_after_a_question_are_another_message(growing: Growing) -> None:
    await growing.reply.text("One moment")
    growing.look()
    assert await growing.reply.set_aside() == "o1"
    growing.draft.end.assert_awaited_once()
    assert (growing.reply.id, growing.reply.lease) == ("o2", growing.draft.lease)
    assert growing.reply.standing_in() == ""
    await growing.reply.text("Here")
    assert growing.outbox.first_looks.call.call_args.args[0] == "o2"
    growing.look()
    assert growing.outbox.draft.call_args.args[2] == "o2"
    await growing.reply.end()
    assert growing.draft.end.await_count == 2
    assert growing.outbox.stand_ins.take_back.call_args.args == (growing.reply.item.id,)
    assert growing.outbox.first_looks.take_back.call_args.args == ("o2",)


@pytest.mark.parametrize(
    ("phase", "again_at", "at", "line"),
    [
        ("thinking", 0.0, 61.0, "I am still working: thinking, 61 s so far. /stop ends my work."),
        ("compacting", 0.0, 61.0, "I am still working: compressing, 61 s so far. /stop ends my work."),
        ("thinking", 90.0, 61.0, "The model did not answer, so I try again in 29 s (61 s so far). /stop ends my work."),
        ("thinking", 9.0, 0.5, "The model did not answer, so I try again in 8 s. /stop ends my work."),
        ("thinking", 61.5, 61.0, "I am still working: thinking, 61 s so far. /stop ends my work."),
        ("waiting for your yes or no", 0.0, 61.0, ""),
    ],
)
async def test_a_long_wait_says_what_it_is_for(
    growing: Growing, phase: Phase, again_at: float, at: float, line: str
) -> None:
    growing.turn.phase, growing.turn.again_at = phase, again_at
    await growing.clock.advance(at)
    again = growing.outbox.stand_ins.call
    again.call_args.args[1]()
    assert growing.line == line
    assert again.call_count == 2, "and once more after as long"
    assert growing.reply.standing_in() == (line and f"My answer took {at:.0f} s.")


async def test_a_line_takes_no_words_place(growing: Growing) -> None:
    await growing.reply.text("On")
    growing.reply.stand_in()
    assert (growing.line, growing.reply.standing_in()) == ("", "")


async def test_whoever_takes_pieces_is_given_them_until_one_is_refused(store: Store, clock: ManualClock) -> None:
    stream = Mock(show_partial=AsyncMock(side_effect=[None, AdapterError("gone"), None]))
    it = Growing(await claimed(store), clock, stream=stream, conversation=KNOWS)
    for words in ("On", "On Tue", "On Tuesday"):
        await it.reply.text(words)
    pieces: list[Outbound] = [call.args[0] for call in stream.show_partial.await_args_list]
    assert [each.text for each in pieces] == ["On", "On Tue"]
    assert (pieces[0].id, pieces[0].session_id, pieces[0].answers) == ("o1", "s1", "e1")
