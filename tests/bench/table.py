"""Figures as an aligned table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: what it is, its value with unit, and the goal or comparison it is read against."""

    what: str
    value: str
    against: str = ""


Rows = Sequence[Row]


def render(title: str, rows: Rows) -> str:
    """A heading and one line a figure; values are aligned at their end."""
    wide = max((len(row.what) for row in rows), default=0)
    long = max((len(row.value) for row in rows), default=0)
    lines = [f"  {row.what:<{wide}}  {row.value:>{long}}  {row.against}".rstrip() for row in rows]
    return "\n".join([title, *lines, ""])


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def milliseconds(seconds: float) -> str:
    """Seconds as text in milliseconds, with the digits that mean something."""
    value = seconds * 1_000
    return f"{value:.3f} ms" if value < 1 else f"{value:.2f} ms" if value < 100 else f"{value:,.0f} ms"
