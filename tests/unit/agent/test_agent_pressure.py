"""The pressure of the window, told once a crossing."""

from __future__ import annotations

import pytest

from gateway.agent.pressure import FULL, NEAR, marks, sentences


def told(tokens: int, *, window: int = 200_000, threshold: int = 100_000) -> list[str]:
    return sentences(marks(tokens, window, threshold), tokens, window, threshold)


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
