"""Which of a chat's reminders a conversation has already, and which it is told of."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.domain.chat import Outbound, OutboundState
from gateway.domain.message import Message, assistant, note_of, noted, text_of, user
from gateway.domain.session import Session
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.structs import replace
from gateway.turns.reminded import _known, reminded
from tests.support.store_kit import key, new_session, outbound

ASKED = noted(user("hello"), at=1_000.0)


class Shown:
    """The part of a store that knows the rows of a chat, newest first, and the sessions before."""

    def __init__(self, *rows: Outbound, before: Session | None = None, has: bool = True) -> None:
        self.rows, self.before, self.has = rows[::-1], before, has

    async def has_reminders(self, _: object) -> bool:
        return self.has

    async def outbox(self, *_: object) -> list[Outbound]:
        return [*self.rows]

    async def sessions(self, *_: object) -> list[Session]:
        return [new_session("s2"), *([self.before] if self.before else [])]


def row(name: str, at: float, **more: Any) -> Outbound:
    """A reminder that was shown, of this text."""
    facts: dict[str, Any] = {"kind": "reminder", "state": OutboundState.SENT, "shown_at": at, **more}
    return replace(outbound(name, text=name), **facts)


async def told(store: Shown, *said: Message, began: float = 0.0) -> list[str]:
    session = new_session("s2", started_at=began)
    talk = SimpleNamespace(stored=SimpleNamespace(session=session), newest_first=lambda: reversed(said))
    found = await reminded(cast(Any, store), cast(Any, talk))
    assert all("reminded" in note_of(each) for each in found)
    return [text_of(each) for each in found]


def test_rows_of_the_very_first_moment_are_known_and_no_earlier_ones() -> None:
    said = [noted(assistant(row), at=at, reminded=row) for row, at in (("early", 9.0), ("first", 10.0), ("last", 11.0))]
    conversation = cast(Any, SimpleNamespace(newest_first=lambda: reversed(said)))
    assert _known(conversation, 10.0) == {"first", "last"}


async def test_what_was_shown_since_the_last_request_is_told_once() -> None:
    rows = (
        row("early", 880.0),  # two minutes before it, by a clock that may be slow
        row("tea", 881.0),
        row("another's", 1_001.0, key=key("2")),
        row("an answer", 1_001.0, kind="reply"),
        row("on its way", 1_001.0, state=OutboundState.PENDING),
        row("known", 1_001.0),
        row("empty", 1_001.0, text=" "),
        row("milk", 1_001.0, shown_at=None, created_at=1_001.0),
        row("tea ✓", 1_002.0, edits="tea"),
        row("early ✓", 1_002.0, edits="early"),
    )
    known = noted(assistant("known"), at=1_001.0, reminded="known")
    assert await told(Shown(*rows), ASKED, known) == ["tea ✓", "milk"]
    assert await told(Shown(*rows, has=False), ASKED) == []
    assert await told(Shown(*(row(f"{n}", 1_000.0 + n) for n in range(7))), ASKED) == ["2", "3", "4", "5", "6"]


@pytest.mark.parametrize(
    ("before", "texts"),
    [
        (None, ["one", "two", "three"]),
        (new_session("s1", last_active_at=1_500.0, end_reason="expired"), ["two", "three"]),
        (new_session("s1", last_active_at=1_500.0, end_reason="reset"), ["three"]),
    ],
)
async def test_in_a_new_session_those_since_the_one_before_are_told_unless_its_person_left_it(
    before: Session | None, texts: list[str]
) -> None:
    rows = [row("one", 1_000.0), row("two", 1_600.0), row("three", 2_100.0)]
    assert await told(Shown(*rows, before=before), began=2_000.0) == texts


async def test_a_store_that_does_not_answer_stops_no_turn() -> None:
    class Away(Shown):
        async def outbox(self, *_: object) -> list[Outbound]:
            raise StoreUnavailable("away")

    assert await told(Away(row("tea", 2_000.0)), ASKED) == []
