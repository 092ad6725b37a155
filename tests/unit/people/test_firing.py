"""How many messages the reminders that are due at once in a chat become."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.domain.chat import SessionKey
from gateway.domain.reminder import Firing
from gateway.people.firing import _within
from tests.support import store_kit


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
