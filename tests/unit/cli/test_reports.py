"""What the store holds, as `legato sessions`, `outbox`, `usage` and `dead` print it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gateway.cli.models import _dollars
from gateway.cli.reports import dead_text, found_text, lineage_text, one_line, outbox_text, show_text, usage_text
from gateway.cli.trace import trace_text

SESSION: dict[str, Any] = {
    "id": "s_1",
    "key": "telegram:5",
    "started_at": "2026-01-02T03:04:05.000+00:00",
    "end_reason": None,
    "title": "Tea",
    "messages": 3,
    "compaction": None,
}
ENDED = {**SESSION, "id": "s_22", "title": None, "end_reason": "compressed"}
ROW: dict[str, Any] = {
    "id": "o_1",
    "platform": "slack",
    "chat": "C1",
    "thread": None,
    "kind": "reply",
    "state": "pending",
    "text": "two\nlines",
    "attempts": 0,
    "ambiguous": 0,
    "created_at": "2026-01-02T03:04:05.000+00:00",
    "due_at": None,
    "error": None,
}
USED: dict[str, Any] = {
    "label": "anna",
    "calls": 1_200,
    "prompt_tokens": 34_000,
    "cache_read_tokens": 30_000,
    "output_tokens": 56,
    "cost_usd": 0.12345,
    "unpriced_calls": 0,
}
CALL = {"id": "c", "type": "function", "function": {"name": "clock", "arguments": "{}"}}


@pytest.mark.parametrize("say", [dead_text, found_text, outbox_text, usage_text])
def test_an_empty_list_says_so(say: Callable[[list[Any]], str]) -> None:
    assert say([]).endswith(".")


@pytest.mark.parametrize(("length", "shown"), [(76, "x" * 76), (77, "x" * 75 + "…")])
def test_a_long_line_is_cut(length: int, shown: str) -> None:
    assert one_line("x" * length) == shown


@pytest.mark.parametrize(
    ("changed", "end"),
    [
        ({}, "two lines"),
        ({"thread": "t"}, "two lines"),
        ({"attempts": 1}, "two lines\n  1 attempt"),
        (
            {"attempts": 3, "ambiguous": 1, "due_at": "2026-01-02T04:05:06.000+00:00"},
            "two lines\n  3 attempts, 1 of them with an unknown outcome, the next at 04:05:06 UTC",
        ),
        ({"attempts": 2, "state": "sent"}, "two lines"),
        ({"attempts": 1, "state": "refused", "error": "gone"}, "two lines\n  given up after 1 attempt: gone"),
        ({"attempts": 0, "state": "withheld", "error": "why"}, "two lines\n  given up after 0 attempts: why"),
    ],
)
def test_a_message_that_is_not_shown_has_its_reason(changed: dict[str, Any], end: str) -> None:
    row = {**ROW, **changed}
    place = "slack:C1/t" if row["thread"] else "slack:C1"
    assert outbox_text([row, row]) == "\n".join(
        [f"2026-01-02 03:04  {row['state']:<9} reply    {place}  o_1\n  {end}"] * 2
    )


def test_a_message_that_was_given_up_has_its_tries() -> None:
    row = {**ROW, "text": "hello", "attempts": 2}
    assert dead_text([row]) == "2026-01-02 03:04  o_1  slack:C1\n  hello\n  given up after 2 attempts"


def test_a_chain_of_sessions_says_what_each_compaction_did() -> None:
    made = {"trigger": "auto", "work": None, "tokens_before": 9_000, "tokens_after": 1_000}
    assert lineage_text([ENDED, {**SESSION, "compaction": made}]) == (
        "id   started           ended        messages  key\ns_22 2026-01-02 03:04  compressed          3  telegram:5\n"
        "  ↓ compressed (auto): ~9,000 → ~1,000 tokens; no details were kept\n"
        "s_1  2026-01-02 03:04  open                3  telegram:5  “Tea”"
    )


def test_a_transcript_names_who_speaks_and_what_is_called() -> None:
    messages = [
        {"role": "user", "content": "so far", "summary": True},
        {"role": "assistant", "content": "", "summary": False, "tool_calls": [CALL, CALL]},
        {"role": "tool", "content": "x" * 2_001, "summary": False},
    ]
    assert show_text({**SESSION, "messages": messages}).split("\n\n") == [
        "s_1  telegram:5  open  3 messages",
        "── summary\nso far",
        "── assistant\n→ calls clock, clock",
        f"── tool\n{'x' * 2_000} … (2,001 characters)",
    ]


def test_what_was_used_stands_in_columns_and_what_has_no_price_beside_them() -> None:
    head, *lines = usage_text([USED, {**USED, "label": "b" * 30, "unpriced_calls": 2}]).split("\n")
    assert head.split() == ["calls", "tokens", "in", "cached", "tokens", "out", "US$"]
    assert lines[0].split() == ["anna", "1,200", "34,000", "30,000", "56", "0.1235"]
    assert lines[1] == lines[0].replace("anna" + " " * 24, "b" * 28) + "  (no price for 2)"


def test_a_trace_tells_in_order_what_was_said_and_what_it_cost() -> None:
    tokens = {"prompt_tokens": 1_200, "cache_read_tokens": 800, "output_tokens": 7}
    call = {"purpose": "turn", "model": "m", "tokens": tokens, "cost_usd": None}
    said = {"id": "1", "role": "user", "text": "hi", "tokens": 3, "tools": []}
    calls = [
        call | {"at": f"2026-01-02T03:04:0{second}Z", "purpose": purpose} for second, purpose in ((5, "b"), (5, "a"))
    ]
    messages = [
        said
        | {
            "at": "2026-01-02T03:04:06Z",
            "role": "assistant",
            "id": "2",
            "text": "",
            "tools": ["shell"],
            "tokens": None,
        },
        said | {"at": "2026-01-02T03:04:05Z"},
    ]
    trace: dict[str, Any] = {
        "item": "7", "key": "telegram/chat=5", "outcome": "answered", "seconds": 1.25, "absorbed_by": "6",
        "attempts": 2,
        "accepted_at": "2026-01-02T03:04:05Z", "kind": "message", "event": "e1", "user": "anna", "text": "hi\nthere",
        "sessions": ["s_1", "s_2"], "messages": messages, "calls": calls,
    }  # fmt: skip
    assert trace_text([trace]).splitlines() == [
        "turn 7  telegram/chat=5  answered into turn 6 after 1.2 s, 2 attempts",
        "2026-01-02 03:04:05  message e1 of anna: hi there",
        "sessions s_1, s_2",
        "2026-01-02 03:04:05  user 1 (3 tokens): hi",
        "2026-01-02 03:04:05  call for b: m, 1,200 tokens in (800 cached), 7 out, no price",
        "2026-01-02 03:04:05  call for a: m, 1,200 tokens in (800 cached), 7 out, no price",
        "2026-01-02 03:04:06  assistant 2: → shell",
    ]
    alone = trace | {
        "outcome": None,
        "absorbed_by": None,
        "attempts": 1,
        "sessions": ["s_1"],
        "messages": [],
        "calls": [],
    }
    assert trace_text([alone, alone]).split("\n\n")[1].splitlines()[::2] == [
        "turn 7  telegram/chat=5  not ended yet",
        "session s_1",
    ]


@pytest.mark.parametrize(
    ("amount", "told"), [(None, "?"), (0, "free"), (0.05, "0.050"), (0.1, "0.10"), (1234.5, "1,234.50")]
)
def test_a_price_has_as_many_digits_as_it_needs(amount: float | None, told: str) -> None:
    assert _dollars(amount) == told
