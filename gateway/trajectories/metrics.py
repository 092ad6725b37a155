"""The figures of one run, and of all runs together. Tokens are `gateway.runtime.tokens`' of the turns' texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict


class Metrics(Struct, frozen=True, kw_only=True):
    """One run. `region`: the turns that were replaced, counted from 0, the second not included.
    `turns_removed`: how many these are. `problem`: why a run over the target is as it was."""

    turns_before: int = 0
    turns_after: int = 0
    turns_removed: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    region: tuple[int, int] | None = None
    summary_calls: int = 0
    summary_errors: int = 0
    skipped_under_target: bool = False
    still_over_limit: bool = False
    problem: str | None = None

    def row(self) -> dict[str, Any]:
        """JSON-able form, derived figures included."""
        return _with_derived(self)


class Totals(Struct, kw_only=True):
    """All runs. `failed`: a summary was wanted and none could be had, so the run is as it was.
    `not_understood`: lines that were passed on as they are because they hold no run."""

    trajectories: int = 0
    compressed: int = 0
    skipped_under_target: int = 0
    still_over_limit: int = 0
    failed: int = 0
    not_understood: int = 0
    turns_before: int = 0
    turns_after: int = 0
    turns_removed: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    summary_calls: int = 0
    summary_errors: int = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one run's row, or that of a line with a `fault`."""
        self.trajectories += 1
        if "fault" in row:
            self.not_understood += 1
            return
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + row[name])
        self.compressed += row["region"] is not None
        self.failed += row["region"] is None and row["summary_errors"] > 0

    def row(self) -> dict[str, Any]:
        """JSON-able form, derived figures included."""
        return _with_derived(self)


_SUMMED: Final = {*Metrics.__struct_fields__} & {*Totals.__struct_fields__}


def _with_derived(figures: Metrics | Totals) -> dict[str, Any]:
    before, after = figures.tokens_before, figures.tokens_after
    ratio = round(after / before, 4) if before else 1.0
    return {**asdict(figures), "tokens_saved": before - after, "ratio": ratio}
