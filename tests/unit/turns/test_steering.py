"""Which messages of a lane enter the turn that runs there, and where they stop."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.domain.chat import CUT, Attachment, Inbound, Source, Terms
from gateway.domain.message import Message, text_of, user
from gateway.runtime.errors import NothingSaid, StoreUnavailable
from gateway.runtime.structs import replace
from gateway.store.records import InboxItem
from gateway.turns.steering import NOT_FETCHED, Steering
from tests.support.fakes import ManualClock
from tests.support.store_kit import key, new_session


class Talk:
    """The part of a conversation that takes messages; more than 99 characters are too long for it."""

    stored = SimpleNamespace(session=new_session("s1"))

    def __init__(self) -> None:
        self.fresh = SimpleNamespace(absorbed=list[str]())
        self.said: list[str] = []

    def add(self, message: Message, _: float) -> None:
        self.said.append(text_of(message))

    def absorb(self, ids: list[str]) -> None:
        self.fresh.absorbed += ids

    async def too_long(self, text: str) -> bool:
        return len(text) > 99

    async def measured_aside(self, message: Message) -> Message:
        return message


def item(number: int, text: str, who: str = "anna", **more: Any) -> InboxItem:
    source = Source(platform="test", chat="1", chat_type="group", user=who)
    inbound = Inbound(**{"event_id": f"e{number}", "source": source, "text": text, **more})
    return InboxItem(id=f"{number}", key=key(), inbound=inbound, accepted_at=100.0 + number, attempts=1)


class Running:
    """A turn of Anna's behind which these items wait."""

    def __init__(self, *waiting: InboxItem, takes: Any = "always", **more: Any) -> None:
        self.talk, self.shut_out, self.strangers = Talk(), Mock(), set[str]()
        self.store = Mock(waiting=AsyncMock(return_value=[*waiting]), has_reminders=AsyncMock(return_value=False))
        self.files = Mock(message=AsyncMock(side_effect=self._message))
        self.steering = Steering(
            item=item(0, "hello"),
            store=self.store,
            files=self.files,
            clock=ManualClock(1_000.0),
            takes_messages=takes,
            alive=Mock(),
            show=cast(Any, None),
            lets_in=self._lets_in,
            shut_out=self.shut_out,
            **more,
        )

    async def _message(self, _: object, said: Inbound, *__: object) -> Message:
        if said.text == "…":
            raise NothingSaid
        return user(said.text)

    async def _lets_in(self, source: Source) -> bool:
        return source.user not in self.strangers

    async def step(self) -> list[str]:
        """What the turn has heard after one more step."""
        await self.steering(cast(Any, self.talk))
        return self.talk.said


@pytest.mark.parametrize(("takes", "heard"), [("always", ["a", "b", "c"]), ("never", ["a"])])
async def test_plain_words_enter_where_they_may_and_nothing_overtakes_them(takes: str, heard: list[str]) -> None:
    it = Running(item(1, "a", kind="steer"), item(2, "b"), item(3, "c", kind="steer"), takes=takes)
    assert await it.step() == heard
    assert it.talk.fresh.absorbed == [f"{number + 1}" for number in range(len(heard))]
    assert await it.step() == heard, "each enters once"


async def test_at_first_only_what_waits_before_the_first_step_enters() -> None:
    it = Running(item(1, "a"), takes="at first")
    assert await it.step() == ["a"]
    it.store.waiting.return_value = [item(2, "b")]
    assert await it.step() == ["a"]


@pytest.mark.parametrize(
    "other",
    [
        {"kind": "queue"},
        {"text": "/new"},
        {"terms": Terms()},
        {"text": " "},
        {"text": "x" * 100},
    ],
)
async def test_what_needs_a_turn_of_its_own_stops_all_behind_it(other: dict[str, Any]) -> None:
    own = item(2, **{"text": "b", **other})
    assert await Running(item(1, "a"), own, item(3, "c", kind="steer")).step() == ["a"]


async def test_words_of_whom_nobody_let_in_stay_and_others_pass_them() -> None:
    it = Running(item(1, "a", "eve"), item(2, "b"))
    it.strangers.add("eve")
    assert await it.step() == ["b"]
    assert it.talk.fresh.absorbed == ["2"]


async def test_whoever_is_shut_out_meanwhile_ends_their_turn_at_its_next_step() -> None:
    it = Running(item(1, "a", "ben"))
    it.strangers.add("anna")
    assert await it.step() == ["a"], "they were asked for just before the first step"
    it.store.waiting.return_value = [item(2, "b", "ben")]
    assert await it.step() == ["a"]
    it.shut_out.assert_called_once_with()


async def test_a_store_that_is_away_keeps_words_where_they_are_and_shuts_nobody_out() -> None:
    it = Running(item(1, "a"))
    it.store.waiting.side_effect = StoreUnavailable("away")
    assert await it.step() == []
    it.store.waiting.side_effect = None
    it.steering.lets_in = AsyncMock(side_effect=StoreUnavailable("away"))
    assert await it.step() == ["a"]
    it.shut_out.assert_not_called()


async def test_what_holds_no_words_after_all_is_passed() -> None:
    it = Running(item(1, "…"), item(2, "b"))
    assert await it.step() == ["b"]
    assert it.talk.fresh.absorbed == ["2"]


async def test_a_text_that_goes_on_is_waited_for_and_enters_as_a_whole() -> None:
    first = item(1, "one ", part_of=CUT, sent_at=1.0)
    it = Running(first)
    it.steering.clock = ManualClock(101.5)
    assert await it.step() == []
    it.store.waiting.return_value = [first, replace(item(2, "two", sent_at=1.0), accepted_at=101.2)]
    assert await it.step() == ["one \ntwo"]
    assert it.talk.fresh.absorbed == ["1", "2"]


async def test_a_hook_changes_words_or_refuses_them() -> None:
    async def message(_: object, said: Inbound) -> Any:
        return SimpleNamespace(refusal="no" if said.text == "b" else "", said=replace(said, text=said.text.upper()))

    assert await Running(item(1, "a"), item(2, "b"), item(3, "c"), plugged=SimpleNamespace(message=message)).step() == [
        "A"
    ]


async def test_what_came_before_a_stop_is_kept_and_what_came_after_is_not() -> None:
    file = Attachment(kind="document", ref="f", name="f.txt", mime="text/plain", size=1)
    it = Running(item(1, "a", attachments=(file,)), item(2, "b"), item(3, "c"))
    assert await it.steering.put_aside(cast(Any, it.talk), 102.0)
    assert it.talk.fresh.absorbed == ["1", "2"]
    assert NOT_FETCHED in it.talk.said[0]
    assert not await it.steering.put_aside(cast(Any, it.talk), 102.0)
    it.files.message.assert_not_awaited()
