"""The figures of many runs."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.trajectories.metrics import Metrics, Totals


@pytest.mark.parametrize(
    ("run", "counted"),
    [
        ({"region": (1, 3), "turns_removed": 2}, {"compressed": 1, "turns_removed": 2}),
        ({"region": (0, 1), "summary_errors": 1}, {"compressed": 1, "summary_errors": 1}),
        ({"summary_errors": 2, "summary_calls": 2}, {"failed": 1, "summary_errors": 2, "summary_calls": 2}),
        ({"skipped_under_target": True}, {"skipped_under_target": 1}),
        ({"still_over_limit": True, "problem": "one turn is too long"}, {"still_over_limit": 1}),
        ({"tokens_before": 8, "tokens_after": 2}, {"tokens_before": 8, "tokens_after": 2}),
    ],
)
def test_a_run_is_counted_by_what_became_of_it(run: dict[str, Any], counted: dict[str, int]) -> None:
    totals = Totals()
    for _ in range(2):
        totals.add(Metrics(**run).row())
    assert totals == Totals(trajectories=2, **{name: 2 * number for name, number in counted.items()})
    totals.add({"fault": "no JSON"})
    assert (totals.trajectories, totals.not_understood, totals.compressed) == (3, 1, 2 * counted.get("compressed", 0))


@pytest.mark.parametrize(("before", "after", "ratio"), [(0, 0, 1.0), (9, 3, 0.3333), (4, 4, 1.0)])
def test_what_was_saved_is_said(before: int, after: int, ratio: float) -> None:
    row = Metrics(tokens_before=before, tokens_after=after).row()
    assert (row["tokens_saved"], row["ratio"]) == (before - after, ratio)
