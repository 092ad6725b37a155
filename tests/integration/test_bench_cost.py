"""The cost bench in short: its cache behaves as Anthropic documents, and a conversation's bill adds up."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.agent.caching import prompt
from gateway.app.plugins import providers
from gateway.domain.message import assistant, user
from gateway.providers.base import ModelRequest, ModelSpec
from gateway.providers.catalog import PriceTable
from gateway.providers.plugin import ModelPrices
from gateway.runtime.tokens import TokenCounter
from tests.bench.cost.__main__ import _kept
from tests.bench.cost.cache import PromptCache
from tests.bench.cost.talk import talk
from tests.bench.cost.ways import WAYS

LONG = "word " * 1_500


def request(*said: str, ttl: str = "5m") -> ModelRequest:
    spec = ModelSpec(provider="anthropic", name="m", cache_marks=True, marks_results=True, cache_ttl=ttl)
    turns = [user(text) if place % 2 == 0 else assistant(text) for place, text in enumerate(said)]
    return ModelRequest(messages=prompt("You are kind.", turns, spec))


@pytest.mark.parametrize(
    ("ttl", "pause", "warm"),
    [("5m", 299.0, True), ("5m", 301.0, False), ("1h", 3_599.0, True), ("1h", 3_601.0, False)],
)
def test_a_prefix_is_read_until_its_time_is_over(ttl: str, pause: float, warm: bool) -> None:
    cache = PromptCache(len)
    first = cache.meet(request(LONG, ttl=ttl), 0.0)
    assert (first.cache_read_tokens, first.input_tokens) == (0, 0)
    second = cache.meet(request(LONG, "Yes.", "And now?", ttl=ttl), pause)
    assert (second.cache_read_tokens == first.cache_write_tokens) is warm
    assert (second.cache_read_tokens == 0) is not warm


def test_a_changed_beginning_and_a_short_one_are_written_anew() -> None:
    cache = PromptCache(len)
    cache.meet(request(LONG, "Yes.", "And now?"), 0.0)
    changed = cache.meet(request("x" + LONG, "Yes.", "And now?"), 1.0)
    assert changed.cache_read_tokens == 0
    short = cache.meet(request("Hi"), 2.0)
    assert (short.cache_write_tokens, short.cache_read_tokens) == (0, 0)


def test_a_read_prolongs_an_entry() -> None:
    cache = PromptCache(len)
    for at in (0.0, 200.0, 400.0):
        usage = cache.meet(request(LONG), at)
    assert usage.cache_write_tokens == 0


async def test_the_bill_of_a_conversation_is_that_of_its_calls(tmp_path: Path) -> None:
    prices = PriceTable(providers())
    record, bill, _ = await talk(1, 12, WAYS["ours"], "seconds", 16_000, tmp_path, TokenCounter(), prices)
    assert record.compactions > 0
    assert record.failed == []
    whole = bill.turns + bill.notes
    listed = ModelPrices(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75)  # below 200,000 tokens
    assert bill.dollars == pytest.approx(listed.cost_usd(whole))
    assert 0.5 < bill.cached < 1
    assert bill.dollars_of_notes < bill.dollars


def test_a_run_that_was_cut_off_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "talked"
    assert _kept(path) == {}
    whole = '[[32000, "seconds", "ours", 1, 200], {"dollars": 2.5}]\n'
    path.write_text(whole + '[[32000, "sec')
    assert _kept(path) == {(32_000, "seconds", "ours", 1, 200): {"dollars": 2.5}}
    assert path.read_text() == whole
