"""What commands say: the pure parts of their answers."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.agent.caps import Standing
from gateway.agent.mcp.server import PromptFacts
from gateway.commands.help import _lines
from gateway.commands.mcp import arguments_in, prompt_text
from gateway.commands.reminders import _line
from gateway.commands.runner import BROKEN, UNREACHABLE, sentence_for, with_choices
from gateway.commands.status import _estimated, _left, protected_told, total_line
from gateway.domain.adapter import Proposal
from gateway.domain.chat import Outbound, OutboundState
from gateway.domain.command import CommandCall
from gateway.domain.usage import BROKEN_OFF, CanonicalUsage, UsageTotal
from gateway.runtime.errors import EmptyAnswer, ProviderUnavailable, UserError
from gateway.runtime.structs import replace
from gateway.store.records import Cap
from tests.support.store_kit import outbound, reminder

USED = UsageTotal(
    calls=2,
    usage=CanonicalUsage(input_tokens=1_000, output_tokens=30),
    cost_usd=0.5,
)
THOUGHT = replace(
    USED, usage=CanonicalUsage(input_tokens=1_000, cache_read_tokens=600, output_tokens=30, reasoning_tokens=9)
)


@pytest.mark.parametrize(
    ("totals", "line"),
    [
        ([], "0 calls, 0 tokens in, 0 out, $0.00"),
        ([USED], "2 calls, 1,000 tokens in, 30 out, $0.50"),
        ([USED, THOUGHT], "4 calls, 2,600 tokens in (600 cached), 60 out (9 thinking), $1.00"),
        ([replace(USED, unpriced_calls=2)], "2 calls, 1,000 tokens in, 30 out, no price known"),
        (
            [replace(USED, unpriced_calls=1)],
            "2 calls, 1,000 tokens in, 30 out, $0.50 (no price known for 1 of the calls)",
        ),
    ],
)
def test_what_was_used_is_one_line(totals: list[UsageTotal], line: str) -> None:
    assert total_line(totals) == line


@pytest.mark.parametrize(
    ("count", "why"),
    [
        (
            9,
            "the last 9 messages would stay word for word, because the setting compression.protect_last_n wants 20, "
            "but no more fit",
        ),
        (20, "the last 20 messages would stay word for word, because the setting compression.protect_last_n is 20."),
        (25, "the last 25 messages would stay word for word, because they fit into 640 tokens."),
    ],
)
def test_how_many_messages_stay_is_told_with_the_reason(count: int, why: str) -> None:
    assert why in protected_told(count, 640, 20)


def test_what_is_estimated_of_it_is_told() -> None:
    assert _estimated([USED]) == []
    assert _estimated([replace(USED, label=BROKEN_OFF), replace(USED, calls=9)]) == [
        "  This includes an estimate for answers that broke off: 2 calls, 1,000 tokens in, 30 out, $0.50"
    ]


@pytest.mark.parametrize(
    ("spent", "resets_at", "line"),
    [
        (400_000, None, "The cap for you today leaves $0.60 of $1.00"),
        (1_200_000, None, "The cap for you today leaves $0.00 of $1.00"),
        (0, 7_300.0, "The cap for you today leaves $1.00 of $1.00 for the next 2 h"),
    ],
)
def test_a_cap_says_what_is_left(spent: int, resets_at: float | None, line: str) -> None:
    cap = Cap(name="person", account="a", limit=1_000_000, resets_at=resets_at)
    assert _left(Standing(cap=cap, spent=spent), now=100.0) == line


PROMPT = PromptFacts(name="p", arguments=(("city", True), ("day", False)))


@pytest.mark.parametrize(
    ("said", "given"),
    [
        ("Graz", {"city": "Graz"}),
        ("city=Graz day=to morrow", {"city": "Graz", "day": "to morrow"}),
        ("Graz day= ", {"city": "Graz"}),
        ("Wien city=Graz", {"city": "Graz"}),
    ],
)
def test_the_arguments_of_a_prompt(said: str, given: dict[str, str]) -> None:
    assert arguments_in(PROMPT, said) == given


def test_a_prompt_says_what_it_needs_and_one_without_arguments_needs_nothing() -> None:
    with pytest.raises(UserError, match=r"needs city\. Write city=… after the command"):
        arguments_in(PROMPT, "day=now")
    assert arguments_in(PromptFacts(name="p"), "anything") == {}


def test_the_words_of_a_prompt_name_who_speaks() -> None:
    said = [
        {"role": "user", "content": {"type": "text", "text": "Hello"}},
        {"role": "assistant", "content": {"type": "text", "text": "Yes"}},
        "no message",
    ]
    assert prompt_text({"messages": said}) == "Hello\n\n[the assistant:]\nYes"
    assert prompt_text({}) == ""


DONE = {"due_at": None, "state": "done", "fired": 1, "fired_at": 1_700_000_000.0}


@pytest.mark.parametrize(
    ("changed", "row", "end"),
    [
        ({"state": "cancelled", "due_at": None}, None, "cancelled"),
        ({"state": "missed", "due_at": None}, None, "I was not running at its time, so I skipped it"),
        (
            {"state": "paused", "due_at": None, "failures": 1},
            None,
            "paused after 1 failure in a row (/reminders resume 7)",
        ),
        (DONE, None, "fired Tue 14 Nov 2023, 22:13:20"),
        (DONE | {"fired": 3}, None, "(3 times)"),
        (DONE | {"kind": "ask"}, None, "not answered yet"),
        (DONE | {"shown_as": "o"}, {"shown_at": 1_700_000_003.0}, "shown 22:13:23"),
        (DONE | {"shown_as": "o"}, {"shown_at": None}, "not shown yet"),
        (DONE | {"shown_as": "o"}, {"state": OutboundState.REFUSED, "error": "gone"}, "not shown: gone"),
    ],
)
def test_a_reminder_says_what_became_of_it(changed: dict[str, Any], row: dict[str, Any] | None, end: str) -> None:
    rows = {} if row is None else {"o": replace(outbound("o"), **row)}
    line = _line(replace(reminder("r"), number=7, **changed), rows, "UTC")
    assert line.startswith("7. (prompt) tea — " if changed.get("kind") == "ask" else "7. tea — ")
    assert line.endswith(end)


@pytest.mark.parametrize(
    ("error", "details", "sentence"),
    [
        (UserError("Say what."), False, "Say what."),
        (ProviderUnavailable("502 of m"), True, "502 of m"),
        (ProviderUnavailable("502 of m"), False, UNREACHABLE),
        (EmptyAnswer(), False, str(EmptyAnswer())),
        (KeyError("x"), True, BROKEN),
    ],
)
def test_an_error_is_a_sentence(error: Exception, details: bool, sentence: str) -> None:
    assert sentence_for(error, details=details) == sentence


def test_usages_are_aligned() -> None:
    assert _lines([("/a", "one"), ("/bcd x", "two")]) == "/a      one\n/bcd x  two"
    assert _lines([]) == ""


CALL = CommandCall(name="model", argument="")
CHOICES = [Proposal(label=f"m{number}", value=f"/model m{number}") for number in range(20)]


def labels(row: Outbound) -> list[str]:
    return [button.label for line in row.buttons for button in line]


def test_choices_are_turned_page_by_page() -> None:
    first = with_choices(outbound("o"), CHOICES, CALL)
    shown = len(first.buttons) - 1
    assert labels(first) == [f"m{number}" for number in range(shown)] + ["▸"]
    second = with_choices(outbound("o"), CHOICES, CALL, 1)
    assert labels(second)[0] == f"m{shown}"
    assert second.buttons[-1][0].token.endswith("0 o /model")
    last = with_choices(outbound("o"), CHOICES[: 2 * shown], CALL, 1)
    assert labels(last)[-1] == "◂"
    assert labels(with_choices(outbound("o"), CHOICES[:shown], CALL)) == [f"m{number}" for number in range(shown)]


def test_a_choice_whose_value_is_too_long_for_a_button_is_left_out() -> None:
    long = Proposal(label="long", value="/model " + "x" * 1_000)
    assert labels(with_choices(outbound("o"), [long, CHOICES[0]], CALL)) == ["m0"]
