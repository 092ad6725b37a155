"""The report of a run over files: a bar while it goes on, a few lines when it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from gateway.trajectories.metrics import Totals
from gateway.trajectories.region import TrajectorySettings
from gateway.trajectories.run import Progress, Report, Tell


@contextmanager
def shown_progress() -> Iterator[Tell]:
    """Shows it on stderr as it goes, if that is a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with RichProgress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        bar = shown.add_task("0 trajectories", total=None)

        def tell(progress: Progress) -> None:
            shown.update(bar, total=progress.size, completed=progress.read, description=_counted(progress.totals))

        yield tell


def _counted(totals: Totals) -> str:
    failed = f", {totals.failed:,} failed" if totals.failed else ""
    return f"{totals.trajectories:,} trajectories, {totals.compressed:,} compressed{failed}"


def report_text(report: Report, settings: TrajectorySettings) -> str:
    """The result in a few lines."""
    totals = report.totals
    left = totals.still_over_limit
    kept = totals.trajectories - totals.compressed - totals.skipped_under_target - totals.not_understood
    lines = [
        f"{totals.trajectories:,} trajectories{' (an earlier run was finished)' if report.resumed else ''}",
        f"  {totals.compressed:,} compressed: {totals.turns_removed:,} turns became {totals.compressed:,} summaries",
        f"  {totals.skipped_under_target:,} have at most {settings.target:,} tokens and are as they were",
    ]
    if kept:
        why = f", {totals.failed:,} of them because the summariser failed" if totals.failed else ""
        lines.append(f"  {kept:,} could not be compressed and are as they were{why}")
    if left:
        lines.append(f"  {left:,} in all still have more than {settings.target:,} tokens")
    if totals.not_understood:
        lines.append(f"  {totals.not_understood:,} lines hold no trajectory and were passed on as they are")
    lines += [
        f"{totals.tokens_before:,} tokens became {totals.tokens_after:,} ({totals.row()['ratio']:.0%}), "
        f"{totals.summary_calls:,} summary calls, {totals.summary_errors:,} errors",
        f"Each one's figures: {report.metrics}",
    ]
    return "\n".join(lines)


def failures_text(report: Report) -> list[str]:
    """A sentence for everything that running the command again may mend."""
    lines = [f"{name} failed: {why}" for name, why in report.failed.items()]
    if report.failed:
        lines.append("mend that and run the command again: it goes on where it was")
    elif report.totals.failed:
        lines.append(
            f"the summariser failed for {report.totals.failed:,} trajectories ({report.metrics} says why); compress "
            f"{report.output} once more to do those"
        )
    return lines
