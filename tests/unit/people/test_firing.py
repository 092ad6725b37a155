"""What fires when reminders are due, in how many messages, and what becomes of prompts that fail."""

from __future__ import annotations

from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from gateway.domain.chat import Inbound, Outbound, SessionKey
from gateway.domain.reminder import Firing, Reminder, ReminderRules
from gateway.people.firing import ONCE, PAUSED, ReminderFiring, _within
from gateway.people.reminders import run_of
from gateway.runtime.errors import StoreUnavailable
from gateway.runtime.points import ignore_points
from gateway.runtime.structs import replace
from gateway.store.port import Store
from gateway.store.records import Arrival, Changed, InboxItem
from tests.support import store_kit
from tests.support.fakes import ManualClock


def due(reminder_id: str, user: str, **more: Any) -> Firing:
    key = SessionKey(platform="fake", chat="g", user=user)
    return Firing(after=store_kit.reminder(reminder_id, key=key, **more), shown=True, delay=0.0)


@pytest.mark.parametrize(
    ("room", "groups"),
    [
        (4, [["a1"], ["a2"], ["b1"], ["b2"]]),
        (3, [["a1"], ["a2"], ["b1", "b2"]]),
        (2, [["a1"], ["a2"]]),
        (1, [["a1", "a2"]]),
        (0, []),
        (-1, []),
    ],
)
def test_what_finds_no_room_becomes_one_message_for_each_conversation_or_waits(
    room: int, groups: list[list[str]]
) -> None:
    firings = [due("a1", "anna"), due("a2", "anna"), due("b1", "bob"), due("b2", "bob")]
    assert [[each.after.id for each in group] for group in _within(firings, room)] == groups


def test_a_prompt_is_never_joined_with_others() -> None:
    firings = [due("p1", "anna", kind="ask"), due("p2", "bob", kind="ask"), due("a1", "anna")]
    assert [[each.after.id for each in group] for group in _within(firings, 2)] == [["p1"], ["a1"]]


class Due:
    """Reminders that are due now, in a chat with room for `room` messages."""

    def __init__(self, store: Store, clock: ManualClock, *reminders: Reminder, room: int = 9) -> None:
        self.clock, self.reminders, self.delivered = clock, [*reminders], list[Outbound]()
        self.store = cast(Any, Mock(wraps=store, due_reminders=AsyncMock(side_effect=self._due)))
        self.store.change_reminder = AsyncMock(side_effect=self._change)
        self.welcome, self.first, self.rooms = True, True, room
        shown = Mock(rules=ReminderRules(failures=3), room=AsyncMock(side_effect=lambda _: self.rooms))
        shown.worded.side_effect = lambda each: replace(each, after=replace(each.after, said=f"⏰ {each.after.text}"))
        shown.rows.side_effect = lambda each: [store_kit.outbound("row", text=each.said or "")]
        shown.joined.side_effect = lambda group, row: ([*group], [store_kit.outbound("joined")])
        shown.change, shown.outbox.deliver = AsyncMock(), self.delivered.extend
        self.shown, self.asked = shown, list[int]()
        pairing = Mock(may_be_told=AsyncMock(side_effect=lambda _: self.welcome))
        self.firing = ReminderFiring(
            store=self.store, reminders=shown, pairing=pairing, clock=clock, points=ignore_points
        )

    async def _due(self, _: float, limit: int) -> list[Reminder]:
        self.asked.append(limit)
        return self.reminders[:limit]

    async def _change(self, after: Reminder, rows: Any, arrival: Any, also: Any) -> Changed:
        gone = {after.id, *(each.id for each in also)}
        self.reminders = [each for each in self.reminders if each.id not in gone]
        return Changed(first=self.first, outbound=tuple(rows))

    @property
    def steps(self) -> list[tuple[Any, ...]]:
        """Each step of the store: the reminder afterwards, rows, the item of a prompt, reminders joined to it."""
        return [call.args for call in self.store.change_reminder.await_args_list]


async def test_a_reminder_that_is_due_is_said_in_one_step_and_shown(store: Store, clock: ManualClock) -> None:
    it = Due(store, clock, store_kit.reminder("r", text="tea"))
    assert await it.firing.fire_due() == 1
    ((after, rows, arrival, also),) = it.steps
    assert (after.id, after.fired, [row.text for row in rows], arrival, also) == ("r", 1, ["⏰ tea"], None, [])
    assert it.delivered == rows
    assert it.asked == [100]


async def test_a_prompt_becomes_an_item_of_its_lane(store: Store, clock: ManualClock) -> None:
    it = Due(store, clock, store_kit.reminder("r", kind="ask", text="How is the weather?"))
    assert await it.firing.fire_due() == 1
    ((after, rows, arrival, _),) = it.steps
    assert rows == []
    assert (arrival.key, arrival.inbound.kind, arrival.inbound.own) == (after.key, "schedule", "How is the weather?")
    assert run_of(arrival.inbound.event_id) == ("r", 1)


async def test_another_process_was_first(store: Store, clock: ManualClock) -> None:
    it = Due(store, clock, store_kit.reminder("r"))
    it.first = False
    assert await it.firing.fire_due() == 0
    assert it.delivered == []


async def test_whoever_may_not_talk_here_any_more_is_told_nothing(store: Store, clock: ManualClock) -> None:
    it = Due(store, clock, store_kit.reminder("r"), room=0)
    it.welcome = False
    assert await it.firing.fire_due() == 1
    ((_, rows, arrival, _),) = it.steps
    assert (rows, arrival) == ([], None)


async def test_one_prompt_of_a_conversation_waits_at_a_time(store: Store, clock: ManualClock) -> None:
    prompts = [store_kit.reminder(f"r{number}", kind="ask") for number in range(2)]
    it = Due(store, clock, *prompts, store_kit.reminder("other", chat="2", kind="ask"))
    assert await it.firing.fire_due() == 2
    assert [step[0].id for step in it.steps] == ["r0", "other"]
    it = Due(store, clock, prompts[1])
    await store_kit.put(store, "e1")
    run = Inbound(event_id="schedule:r0:1", source=prompts[0].source, text="…", kind="schedule")
    await store.accept([Arrival(inbound=run, key=prompts[0].key, at=0.0)], cap=9)
    assert await it.firing.fire_due() == 0


async def test_many_at_once_become_as_many_messages_as_have_room_and_hide_nothing(
    store: Store, clock: ManualClock
) -> None:
    it = Due(store, clock, *(store_kit.reminder(f"r{number:03}") for number in range(100)), room=1)
    assert await it.firing.fire_due() == 100
    ((_, rows, _, also),) = it.steps
    assert ([row.id for row in rows], len(also)) == (["joined"], 99)
    full = Due(store, clock, *(store_kit.reminder(f"r{number:03}") for number in range(250)), room=0)
    assert await full.firing.fire_due() == 0
    assert full.asked == [100, 200, 400]


async def test_a_reminder_of_a_chat_that_is_gone_is_said_where_its_person_writes(
    store: Store, clock: ManualClock
) -> None:
    at = replace(store_kit.key(), thread="~1")
    it = Due(store, clock, store_kit.reminder("r", key=at))
    await it.firing.fire_due()
    assert it.steps[0][0].key == at.owner
    it = Due(store, clock, store_kit.reminder("r", key=at))
    it.store.tip = AsyncMock(return_value=store_kit.new_session("s", message_count=1))
    await it.firing.fire_due()
    assert it.steps[0][0].key == at


async def test_a_store_that_is_away_is_asked_the_next_time(store: Store, clock: ManualClock) -> None:
    it = Due(store, clock)
    it.store.due_reminders = AsyncMock(side_effect=StoreUnavailable("away"))
    assert await it.firing.fire_due() == 0


@pytest.mark.parametrize(
    ("present", "outcome", "shown"),
    [
        ({"failures": 1}, "failed", [("error", "no model"), ("notice", ONCE.format(number=7))]),
        ({"failures": 1}, "dead", [("error", "no model"), ("notice", ONCE.format(number=7))]),
        ({"failures": 2}, "failed", []),
        (
            {"failures": 3, "state": "paused"},
            "failed",
            [("error", "no model"), ("notice", PAUSED.format(number=7, failures=3))],
        ),
        ({"failures": 1}, "answered", [("error", "no model")]),
        ({"failures": 1}, "stopped", [("error", "no model")]),
        ({"failures": 1, "rule": ""}, "failed", [("error", "no model")]),
        ({"failures": 1, "judged": 9}, "failed", [("error", "no model")]),
    ],
)
async def test_of_failures_in_a_row_the_first_is_told_and_the_one_that_pauses_the_prompt(
    store: Store, clock: ManualClock, present: dict[str, Any], outcome: Any, shown: list[tuple[str, str]]
) -> None:
    it = Due(store, clock)
    facts = {"kind": "ask", "rule": "FREQ=DAILY", "number": 7, "judged": 5, **present}
    it.store.reminder = AsyncMock(return_value=replace(store_kit.reminder("r"), **facts))
    run = Inbound(event_id="schedule:r:5", source=store_kit.reminder("r").source, text="…", kind="schedule")
    item = InboxItem(id="1", key=store_kit.key(), inbound=run, accepted_at=0.0, attempts=1)
    assert [*await it.firing.judged(item, outcome, [("error", "no model")])] == shown
    assert it.shown.change.await_count == (outcome != "stopped")
    if outcome != "stopped":
        decide = it.shown.change.await_args.args[2]
        before = replace(store_kit.reminder("r"), **{**facts, "judged": 4, "failures": 0, "state": "waiting"})
        after = decide(before)
        assert (after.failures if after else 0) == (outcome != "answered")
