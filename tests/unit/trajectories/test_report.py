"""What a run over trajectories says at its end."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from gateway.trajectories import report
from gateway.trajectories.metrics import Totals
from gateway.trajectories.region import TrajectorySettings
from gateway.trajectories.report import failures_text, report_text, shown_progress
from gateway.trajectories.run import Progress, Report


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


def test_a_terminal_is_shown_how_far_it_is_and_a_file_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = Progress(totals=Totals(trajectories=1_200, compressed=3, failed=2), read=50, size=200)
    for is_terminal in (True, False):
        stream = StringIO()
        console = Console(file=stream, force_terminal=is_terminal, width=100)
        monkeypatch.setattr(report, "Console", lambda *, stderr, console=console: stderr and console)
        with shown_progress() as tell:
            tell(progress)
        assert ("1,200 trajectories, 3 compressed, 2 failed" in stream.getvalue()) is is_terminal
        assert ("25%" in stream.getvalue()) is is_terminal


@pytest.mark.parametrize(
    ("failed", "of_summaries", "told"),
    [
        ({}, 0, []),
        (
            {"a.jsonl": "gone"},
            3,
            ["a.jsonl failed: gone", "mend that and run the command again: it goes on where it was"],
        ),
        ({}, 3, ["the summariser failed for 3 trajectories (m says why); compress o once more to do those"]),
    ],
)
def test_what_another_run_may_mend_is_said(failed: dict[str, str], of_summaries: int, told: list[str]) -> None:
    totals = Totals(failed=of_summaries)
    found = Report(totals=totals, failed=failed, output=Path("o"), metrics=Path("m"), resumed=False)
    assert failures_text(found) == told
