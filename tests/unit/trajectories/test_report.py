"""What a run over trajectories says at its end."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.trajectories.metrics import Totals
from gateway.trajectories.region import TrajectorySettings
from gateway.trajectories.report import report_text
from gateway.trajectories.run import Report


@pytest.mark.parametrize(
    ("totals", "lines"),
    [
        (Totals(trajectories=3, compressed=3), []),
        (Totals(trajectories=3, compressed=1), ["  2 could not be compressed and are as they were"]),
        (
            Totals(trajectories=9, compressed=1, skipped_under_target=4, not_understood=2, failed=1),
            [
                "  2 could not be compressed and are as they were, 1 of them because the summariser failed",
                "  2 lines hold no trajectory and were passed on as they are",
            ],
        ),
        (Totals(trajectories=1, compressed=1, still_over_limit=1), ["  1 in all still have more than 15,000 tokens"]),
    ],
)
@pytest.mark.parametrize("resumed", [True, False])
def test_the_report_says_what_is_not_as_it_was_wanted(totals: Totals, lines: list[str], resumed: bool) -> None:
    report = Report(totals=totals, failed={}, output=Path("o"), metrics=Path("m"), resumed=resumed)
    first, second, third, *middle, _, last = report_text(report, TrajectorySettings(target=15_000)).split("\n")
    assert first == f"{totals.trajectories} trajectories" + (" (an earlier run was finished)" if resumed else "")
    assert second == f"  {totals.compressed} compressed: 0 turns became {totals.compressed} summaries"
    assert third == f"  {totals.skipped_under_target} have at most 15,000 tokens and are as they were"
    assert middle == lines
    assert last == "Each one's figures: m"
