"""The pressure of the window, told once a crossing, and the rule for a compaction before the next turn."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.compaction import Hygiene
from gateway.agent.conversation import Conversation
from gateway.agent.pressure import FULL, NEAR, marks, sentences
from gateway.context.policy import HygieneRules
from gateway.providers.base import ModelSpec
from tests.support.fakes import ManualClock

sizes = st.integers(0, 10_000)
tokens = st.integers(0, 300_000)


def due(messages: int, used: int, window: int, *, enabled: bool = True) -> bool:
    spec, fresh = ModelSpec(provider="test", name="m", context_length=window), SimpleNamespace(announced=())
    talk = SimpleNamespace(
        length=messages,
        prompt_tokens=lambda: used,
        spec=spec,
        fresh=fresh,
        engine=SimpleNamespace(rests=False),
    )
    return Hygiene(HygieneRules(), ManualClock(), enabled=enabled).due(cast(Conversation, talk))


@given(sizes, tokens, st.integers(1, 200_000))
def test_due_is_a_share_of_the_window_or_a_hard_count(messages: int, used: int, window: int) -> None:
    assert due(messages, used, window) == (messages >= 4 and (used >= 0.85 * window or messages >= 5_000))


@given(sizes, tokens, sizes, tokens)
def test_more_is_never_less_due(messages: int, used: int, more: int, added: int) -> None:
    if due(messages, used, 100_000):
        assert due(messages + more, used + added, 100_000)


@given(sizes, tokens)
def test_switched_off_it_is_never_due(messages: int, used: int) -> None:
    assert not due(messages, used, 1, enabled=False)


def told(tokens: int, *, threshold: int = 100_000) -> list[str]:
    return sentences(marks(tokens, 200_000, threshold), tokens, 200_000, threshold)


def test_the_person_is_told_near_the_threshold_with_both_numbers() -> None:
    assert told(84_999) == []
    assert told(85_000) == [NEAR.format(tokens=85_000, threshold=100_000)]


def test_a_full_window_is_the_graver_news() -> None:
    assert told(149_999) == [NEAR.format(tokens=149_999, threshold=100_000)]
    assert told(150_000) == [FULL.format(share=0.75, tokens=150_000, window=200_000)]


def test_without_automatic_compaction_only_the_window_counts() -> None:
    assert told(149_999, threshold=0) == []
    assert len(told(150_000, threshold=0)) == 1


@pytest.mark.parametrize(("tokens", "count"), [(0, 0), (129_999, 0), (130_000, 1), (150_000, 2), (400_000, 2)])
def test_the_marks_of_the_window(tokens: int, count: int) -> None:
    assert len(marks(tokens, 200_000, 0)) == count


def told_in(window: int, tokens: int, threshold: int) -> list[str]:
    return sentences(marks(tokens, window, threshold), tokens, window, threshold)


def test_a_window_that_is_compressed_above_the_mark_is_not_called_full_before() -> None:
    assert told_in(16_384, 12_400, 12_500) == [NEAR.format(tokens=12_400, threshold=12_500)]
    assert told_in(16_384, 15_000, 12_500) == [FULL.format(share=15_000 / 16_384, tokens=15_000, window=16_384)]
    assert told_in(4_096, 3_500, 3_430) == [], "the next message compresses by itself"


def test_a_compression_that_is_as_near_as_the_next_message_is_not_announced() -> None:
    assert told_in(4_096, 3_000, 3_133) == []


@pytest.mark.parametrize(
    ("seconds", "changed", "error", "failure"),
    [
        (0.0, True, "", ""),
        (0.0, False, "", "nothing could be compressed"),
        (0.0, False, "no model", "no model"),
        (1_000.0, True, "", "it took longer than"),
    ],
)
async def test_a_pass_that_won_nothing_is_not_made_again_before_the_conversation_has_grown(
    clock: ManualClock, seconds: float, changed: bool, error: str, failure: str
) -> None:
    fresh = SimpleNamespace(announced=("half", "hygiene-tried-at:5"))
    talk = cast(
        Any, SimpleNamespace(length=100, fresh=fresh, announce=lambda marks: setattr(fresh, "announced", marks))
    )
    report = SimpleNamespace(changed=changed, outcome=SimpleNamespace(error=error, aborted=bool(error)))

    async def run(_: object, trigger: str) -> Any:
        assert trigger == "hygiene"
        await clock.sleep(seconds)
        return report

    passing = asyncio.ensure_future(Hygiene(HygieneRules(), clock, enabled=True).run(talk, Mock(run=run)))
    await clock.advance(seconds)
    result = await passing
    assert (result.failure or "").startswith(failure)
    assert bool(result.failure) is bool(failure)
    assert (result.report is report) is not bool(failure)
    assert result.technical is bool(error)
    assert fresh.announced == ("half", "hygiene-tried-at:100" if failure else "hygiene-tried-at:5")
