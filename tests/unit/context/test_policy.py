"""Budgets: the numbers for a large window, and the shares that win on a small one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import asdict

from gateway.context.policy import (
    TAIL_OVERRUN,
    Budgets,
    CompressionSettings,
    Pace,
    Rates,
    budgets,
    cheapest_threshold,
    fitted,
    summary_budget,
)
from gateway.context.state import Correction
from gateway.domain.usage import EMERGENCY, HYGIENE, LOGGED, TOLD, is_emergency, reserved_output

PLAIN = CompressionSettings()


def test_a_large_window_has_the_plain_figures() -> None:
    assert budgets(200_000, PLAIN, reserved_output(200_000, None)) == Budgets(
        usable_tokens=163_036,
        threshold_tokens=100_000,
        tail_tokens=20_000,
        head_tokens=4_000,
        max_summary_tokens=10_000,
        ledger_tokens=12_000,
        fallback_chars=8_000,
    )


def test_the_summary_is_capped_on_a_huge_window() -> None:
    assert budgets(1_000_000, PLAIN, 8_192).max_summary_tokens == 12_000
    assert budgets(1_000_000, PLAIN, 8_192).ledger_tokens == 12_000


def test_the_tail_is_capped_whatever_the_window() -> None:
    assert budgets(1_000_000, PLAIN, 8_192).tail_tokens == 25_000
    wider = CompressionSettings(max_tail_tokens=60_000)
    assert budgets(1_000_000, wider, 8_192).tail_tokens == 60_000


@pytest.mark.parametrize(("window", "share"), [(16_000, 0.10), (32_000, 0.115), (128_000, 0.15), (200_000, 0.20)])
def test_the_tail_yields_where_a_pass_would_leave_more_than_half(window: int, share: float) -> None:
    made = budgets(window, PLAIN, reserved_output(window, None))
    assert made.tail_tokens / made.threshold_tokens == pytest.approx(share, abs=0.005)
    roomy = budgets(window, CompressionSettings(left_ratio=0.9), reserved_output(window, None))
    assert roomy.tail_tokens == int(roomy.threshold_tokens * 0.20)


def test_a_share_that_was_asked_for_yields_by_half_at_most() -> None:
    wanted = CompressionSettings(target_ratio=0.6)
    made = budgets(16_000, wanted, reserved_output(16_000, None))
    assert made.tail_tokens == int(made.threshold_tokens * 0.3)


@pytest.mark.parametrize(
    ("window", "output", "threshold"),
    [
        (128_000, None, 64_000),
        (100_000, None, 64_000),
        (64_000, None, 48_960),
        (8_000, None, 6_120),
        (64_000, 32_000, 27_200),
    ],
)
def test_the_floor_never_disables_compaction(window: int, output: int | None, threshold: int) -> None:
    assert budgets(window, PLAIN, reserved_output(window, output)).threshold_tokens == threshold


@given(st.integers(500, 2_000_000), st.sampled_from([0, 64_000]), st.floats(0.05, 0.95), st.floats(0.10, 0.80))
def test_shares_of_the_threshold_win(window: int, floor: int, threshold: float, ratio: float) -> None:
    settings = CompressionSettings(threshold=threshold, min_threshold_tokens=floor, target_ratio=ratio)
    plan = budgets(window, settings, reserved_output(window, None))
    assert 0 < plan.threshold_tokens <= 0.85 * window
    assert plan.head_tokens <= 0.10 * plan.threshold_tokens
    assert plan.max_summary_tokens <= 0.15 * plan.threshold_tokens
    assert plan.max_summary_tokens + plan.ledger_tokens <= 0.325 * plan.threshold_tokens
    assert min(25_000, 0.09 * plan.threshold_tokens - 1) <= plan.tail_tokens <= 0.80 * plan.threshold_tokens
    assert plan.fallback_chars <= min(8_000, 4 * plan.max_summary_tokens)


@pytest.mark.parametrize(
    ("middle", "tokens"),
    [(0, 2_000), (9_999, 2_000), (12_000, 2_000), (20_000, 3_000), (30_000, 4_500), (60_000, 6_000), (150_000, 10_000)],
)
def test_summary_budget(middle: int, tokens: int) -> None:
    assert summary_budget(middle, 12_000) == tokens


@given(st.integers(0, 1_000_000), st.integers(0, 50_000), st.integers(1, 12_000))
def test_the_summary_budget_never_falls(middle: int, more: int, most: int) -> None:
    assert summary_budget(middle, most) <= summary_budget(middle + more, most) <= most


def test_overhead_narrows_the_parts_but_leaves_something() -> None:
    plain = budgets(8_000, CompressionSettings(min_threshold_tokens=0), 800)
    assert fitted(plain, 500) == plain
    narrow = fitted(plain, 3_000)
    notes = narrow.max_summary_tokens + narrow.ledger_tokens
    assert narrow.head_tokens + notes + narrow.tail_tokens * 1.5 <= 700
    assert fitted(plain, 1_000_000).tail_tokens == plain.tail_tokens // 10


@pytest.mark.parametrize(
    ("tokens", "window", "reached"), [(94, 100, False), (95, 100, True), (200, 100, True), (10, 0, False)]
)
def test_the_last_mark_of_a_window_is_an_emergency_but_not_where_the_window_is_unknown(
    tokens: int, window: int, reached: bool
) -> None:
    assert is_emergency(tokens, window) == reached


def test_the_marks_of_a_window() -> None:
    assert (LOGGED, TOLD, HYGIENE, EMERGENCY) == (0.65, 0.75, 0.85, 0.95)


def test_the_ratio_follows_what_is_reported() -> None:
    correction = Correction()
    for _ in range(30):
        correction = correction.observed(1_000, 1_300)
    assert correction.apply(1_000) == 1_300
    assert correction.invert(1_300) == 1_000
    for _ in range(60):
        correction = correction.observed(1_000, 1_000)
    assert correction.ratio == pytest.approx(1.0, abs=0.01)


def test_small_prompts_and_absurd_reports_do_not_mislead() -> None:
    assert Correction().observed(50, 500) == Correction()
    assert Correction().observed(1_000, 0) == Correction()
    assert Correction().observed(1_000, 1_000_000).ratio == 4.0


@pytest.mark.parametrize(
    "state", [None, 3, {}, {"ratio": "x", "samples": 1}, {"ratio": 99.0, "samples": 2}, {"ratio": 1.2}]
)
def test_a_malformed_ratio_starts_afresh(state: object) -> None:
    assert Correction.load(state) == Correction()


def test_a_ratio_survives_a_restart() -> None:
    learned = Correction().observed(1_000, 1_200)
    assert Correction.load(asdict(learned)) == learned


@pytest.mark.parametrize("overhead", [0, 3_000, 5_500, 8_000])
def test_a_long_system_prompt_leaves_room_behind_a_pass(overhead: int) -> None:
    plain = budgets(16_000, CompressionSettings(), reserved_output(16_000, None))
    kept = fitted(plain, overhead)
    left = kept.head_tokens + kept.max_summary_tokens + kept.ledger_tokens + int(kept.tail_tokens * TAIL_OVERRUN)
    assert left <= 0.7 * (plain.threshold_tokens - overhead)


SONNET = Rates(input=3.0, read=0.3, write=3.75, output=15.0)
FLAT = Rates(input=1.0, read=1.0, write=1.0, output=4.0)


@pytest.mark.parametrize(
    ("growth", "cached", "rates", "tokens"),
    [
        (900, 0.97, SONNET, 64_000),  # reading is dear beside a pass: as early as the settings let it
        (6_000, 0.97, SONNET, 120_000),  # every step reads long results: a pass would come again at once
        (6_000, 0.40, SONNET, 64_000),  # hours between two turns: what is not there need not be written again
        (6_000, 0.0, FLAT, 70_000),
        (900, 0.97, None, None),  # no price is known
    ],
)
def test_the_cheapest_threshold(growth: float, cached: float, rates: Rates | None, tokens: int | None) -> None:
    pace = Pace(growth=growth, cached=cached, requests=40)
    found = cheapest_threshold(64_000, CompressionSettings(threshold="auto"), pace, rates)
    assert found == tokens if tokens is None else found == pytest.approx(tokens, rel=0.12)


def test_a_pace_is_learned_from_requests_that_grow() -> None:
    pace, before = Pace(), 0
    for number in range(60):
        prompt = 10_000 + 500 * (number % 20)
        pace, before = pace.after(prompt, before, prompt - 500), prompt
    assert pace.growth == pytest.approx(500)
    assert pace.cached == pytest.approx(0.96, abs=0.02)
    assert pace.requests == 57, "what a compaction left tells nothing"
    unknown = Pace(growth=500, cached=0.9, requests=9)
    assert cheapest_threshold(64_000, CompressionSettings(), unknown, SONNET) is None


def test_long_messages_leave_more_of_a_small_window_free() -> None:
    plain = budgets(4_096, CompressionSettings(), 410)
    short, long = fitted(plain, 600, 100), fitted(plain, 600, 250)
    assert long.ledger_tokens < short.ledger_tokens == fitted(plain, 600).ledger_tokens
    large = budgets(32_000, CompressionSettings(), 4_000)
    assert fitted(large, 2_000, 5_000) == fitted(large, 2_000)


def test_less_is_left_where_the_window_ends_before_the_cheapest_threshold() -> None:
    plain = fitted(budgets(32_000, CompressionSettings(), 4_000), 2_000)
    cheap = fitted(budgets(32_000, CompressionSettings(), 4_000, cheapest=64_000), 2_000)
    assert cheap.threshold_tokens == plain.threshold_tokens
    assert cheap.max_summary_tokens < 0.8 * plain.max_summary_tokens
    within = budgets(200_000, CompressionSettings(), 4_000, cheapest=80_000)
    assert within.free_share == budgets(200_000, CompressionSettings(), 4_000).free_share
