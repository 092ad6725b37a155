"""Figures as an aligned table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """One figure: what it is, its value with unit, what else it is read against, and how many `times` the figure of
    `beside` it is, which the same run measured. `kept` is what `--write` keeps of it: without one, its ratio."""

    what: str
    value: str
    against: str = ""
    times: float | None = None
    beside: str = ""
    kept: Mapping[str, Any] | None = None

    @property
    def compared(self) -> bool:
        """Whether there is a ratio, and to another figure than its own."""
        return self.times not in (None, 1.0)

    @property
    def comparison(self) -> str:
        """The third column."""
        ratio = f"{self.times:.2f} times {self.beside}" if self.compared else ""
        return "; ".join(part for part in (ratio, self.against) if part)


Rows = Sequence[Row]


def kept(rows: Rows) -> list[Mapping[str, Any]]:
    """What of the rows other machines can be compared with, and what is drawn."""
    return [
        row.kept or {"what": row.what.strip(), "times": row.times, "beside": row.beside}
        for row in rows
        if row.kept or row.compared
    ]


def render(title: str, rows: Rows) -> str:
    """A heading and one line a figure; values are aligned at their end."""
    wide = max((len(row.what) for row in rows), default=0)
    long = max((len(row.value) for row in rows), default=0)
    lines = [f"  {row.what:<{wide}}  {row.value:>{long}}  {row.comparison}".rstrip() for row in rows]
    return "\n".join([title, *lines, ""])


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which `share` (0 to 1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def milliseconds(seconds: float) -> str:
    """Seconds as text in milliseconds, with the digits that mean something."""
    value = seconds * 1_000
    return f"{value:.3f} ms" if value < 1 else f"{value:.2f} ms" if value < 100 else f"{value:,.0f} ms"


def memory(pid: int | str = "self", figure: str = "VmRSS") -> float:
    """Resident memory of a process in MB (Linux)."""
    status = Path(f"/proc/{pid}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(figure)), 0.0)


def peak_memory(pid: int | str = "self") -> float:
    """The same at its highest so far; not `ru_maxrss`, which begins with the parent's."""
    return memory(pid, "VmHWM")
