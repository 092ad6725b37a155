"""The rule for a compaction before the next turn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from gateway.agent.conversation import Conversation
from gateway.agent.hygiene import Hygiene
from gateway.context.policy import HygieneRules
from gateway.providers.base import ModelSpec
from tests.support.fakes import ManualClock

sizes = st.integers(0, 10_000)
tokens = st.integers(0, 300_000)


@given(sizes, tokens, st.integers(1, 200_000))
def test_due_is_a_share_of_the_window_or_a_hard_count(messages: int, used: int, window: int) -> None:
    due = HygieneRules().due(messages=messages, tokens=used, context_length=window)
    assert due == (messages >= 4 and (used >= 0.85 * window or messages >= 5_000))


@given(sizes, tokens, sizes, tokens)
def test_more_is_never_less_due(messages: int, used: int, more: int, added: int) -> None:
    rules = HygieneRules()
    if rules.due(messages=messages, tokens=used, context_length=100_000):
        assert rules.due(messages=messages + more, tokens=used + added, context_length=100_000)


@given(sizes, tokens)
def test_switched_off_it_is_never_due(messages: int, used: int) -> None:
    spec = ModelSpec(provider="test", name="m", context_length=1)
    full = cast(Conversation, SimpleNamespace(length=messages, prompt_tokens=lambda: used, spec=spec, announced=()))
    assert not Hygiene(HygieneRules(), ManualClock(), enabled=False).due(full)
