"""/pin and /unpin."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from gateway.domain.rule import LONGEST_PIN, MOST_PINS, PINS_SHARE, Pin, Pins
from gateway.runtime.structs import replace

if TYPE_CHECKING:
    from tests.unit.commands.conftest import Calling


class Board:
    """The rules of the chat, and what they were said to be set by."""

    def __init__(self, call: Calling, *rules: str, window: int = 1_000_000) -> None:
        self.pins = Pins(rules=tuple(Pin(text=each, at=0.0) for each in rules), set_by=None)
        self.said: str | None = None
        call.store.pins = AsyncMock(side_effect=lambda _: self.pins)  # type: ignore[method-assign]
        call.sessions.set_pins = AsyncMock(side_effect=self._set)
        models = call.sessions.models
        models.of.return_value = models.home_of.return_value = SimpleNamespace(context_length=window)

    async def _set(self, _: Any, present: Any, before: Pins, after: Pins, said: str | None = None) -> None:
        assert before == self.pins
        self.pins, self.said = after, said

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.pins.rules]


async def test_a_rule_is_pinned_once_and_listed(call: Calling) -> None:
    board = Board(call)
    assert (await call("/pin")).startswith("No rules are pinned here.")
    assert (await call("/pin metres")).startswith(
        "Pinned as number 1. From now on, I follow this rule in every answer."
    )
    assert (board.texts, board.pins.set_by, board.said) == (["metres"], "i", None)
    assert (await call("/pin tea")).startswith("Pinned as number 1."), "the same item again"
    call.item = "j"
    assert await call("/pin metres") == "This rule is already pinned as number 1."
    assert "as number 2" in await call("/pin tea")
    listed = await call("/pin list")
    assert listed.splitlines()[:2] == ["1. metres", "2. tea"]
    assert "of every prompt. /unpin" in listed


async def test_a_rule_that_a_message_states_is_pinned_as_the_message_says_it(call: Calling) -> None:
    board = Board(call)
    context = call.context("From now on, be brief.")
    pin = call.program.registry.get("pin")
    assert pin is not None
    await pin.run(replace(context, argument=context.inbound.text))
    assert board.said == board.texts[0] == "From now on, be brief."


async def test_in_a_group_a_rule_is_one_line_and_says_whose_it_is(call: Calling) -> None:
    board = Board(call)
    told = await call("/pin be\nbrief", chat_type="group")
    assert "in every answer to everybody here." in told
    assert [each.signed for each in board.pins.rules] == ["[Anna] be brief"]
    assert "and apply to everybody here" in await call("/pins", chat_type="group")


@pytest.mark.parametrize(
    ("command", "left", "told"),
    [
        ("/unpin 2", ["a", "c"], "I removed pin 2. These pins are left:\n1. a\n2. c\n"),
        ("/unpin 1, 3", ["b"], "I removed pin 1, 3. These pins are left:\n1. b\n"),
        ("/pin remove 3 3", ["a", "b"], "I removed pin 3. These"),
        ("/pin delete ALL", [], "I removed all pins. No rules are pinned now."),
        ("/unpin all", [], "I removed all pins. No rules are pinned now."),
        ("/unpin b", ["a", "c"], "I removed pin 2."),
        ("/unpin 4", ["a", "b", "c"], "There is no pin number 4."),
        ("/unpin 0", ["a", "b", "c"], "There is no pin number 0."),
        ("/unpin d", ["a", "b", "c"], "Give the number of the pin to remove, for example: /unpin 2\n1. a"),
        ("/pin 2", ["a", "b", "c"], "Write the rule in words after /pin."),
    ],
)
async def test_rules_go_by_number_or_by_their_words(call: Calling, command: str, left: list[str], told: str) -> None:
    board = Board(call, "a", "b", "c")
    assert (await call(command)).startswith(told)
    assert board.texts == left


async def test_another_attempt_at_a_removal_removes_no_more(call: Calling) -> None:
    board = Board(call, "a", "b")
    for _ in range(2):
        assert (await call("/unpin 1")).startswith("I removed pin 1.")
    assert board.texts == ["b"]
    assert (await call("/unpin d")).startswith("Give the number")
    Board(call)
    assert (await call("/unpin d")).startswith("No rules are pinned here.")


@pytest.mark.parametrize(
    ("there", "rule", "window", "why"),
    [
        (MOST_PINS, "one more", 10**6, f"at most {MOST_PINS} pins"),
        (MOST_PINS - 1, "one more", 10**6, ""),
        (0, "x" * (LONGEST_PIN + 1), 10**6, f"at most {LONGEST_PIN} characters, but this one has 501"),
        (0, "x" * LONGEST_PIN, 10**6, ""),
        (0, "my key is s3cret", 10**6, "a password or key"),
        (0, "one", 1_000, f"may take {int(1_000 * PINS_SHARE)} tokens"),
    ],
)
async def test_what_cannot_be_pinned_is_refused_with_a_reason(
    call: Calling, there: int, rule: str, window: int, why: str
) -> None:
    board = Board(call, *(f"{number}" for number in range(there)), window=window)
    told = await call(f"/pin {rule}")
    assert told.startswith("I did not pin this rule, because " if why else "Pinned as number")
    assert why in told
    assert len(board.texts) == there + (not why)


async def test_the_window_is_that_of_the_model_that_the_session_uses(call: Calling) -> None:
    Board(call)
    session = await call.talk()
    await call("/pin a")
    call.sessions.models.of.assert_called_once_with(session)
