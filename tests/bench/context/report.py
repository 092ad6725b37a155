"""The figures as tables that fit a terminal, and whether they reach what they should."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.context.figures import Figures, lost_by
from tests.bench.context.observing import Need, Record

Run = tuple[str, str]  # policy, summariser ("" where none is asked)

JUDGED: Final[Run] = ("compressor", "extractive")
_NOTHING: Final = "-"


@dataclass(frozen=True, slots=True)
class Column:
    """A heading of one or two lines, and how a figure is put under it."""

    heading: tuple[str, str]
    cell: Callable[[Figures], str]


@dataclass(frozen=True, slots=True)
class Target:
    """The goal of a figure, and whether the figure reaches it."""

    what: str
    goal: str
    value: Callable[[Figures], str]
    reached: Callable[[Figures], bool]


KEPT: Final = (
    Column(("needed:", "in view"), lambda f: _share(f.in_view)),
    Column(("in view", "+recall"), lambda f: _share(f.found)),
    Column(("values", "after 1"), lambda f: _share(f.identifiers[1])),
    Column(("", "after 3"), lambda f: _share(f.identifiers[3])),
    Column(("", "after 10"), lambda f: _share(f.identifiers[10])),
    Column(("rules", "after 1"), lambda f: _share(f.clauses[1])),
    Column(("", "after 3"), lambda f: _share(f.clauses[3])),
    Column(("", "after 10"), lambda f: _share(f.clauses[10])),
    Column(("every", "pin"), lambda f: _percent(f.pinned)),
    Column(("shown", "stale"), lambda f: f"{f.stale}/{f.replaced}"),
    Column(("", "leaks"), lambda f: str(f.leaks)),
)

COST: Final = (
    Column(("fits the", "window"), lambda f: _percent(f.fits)),
    Column(("valid", "request"), lambda f: _percent(f.valid)),
    Column(("turn", "failed"), lambda f: _percent(f.failed)),
    Column(("same as", "before"), lambda f: _share(f.same)),
    Column(("of 100 turns:", "calls"), lambda f: f"{f.calls:.1f}"),
    Column(("for", "summaries"), lambda f: f"{f.summaries:.1f}"),
    Column(("1,000", "tokens"), lambda f: f"{f.tokens / 1000:,.0f}"),
    Column(("wait", "p95"), lambda f: f"{f.wait:.0f} s"),
    Column(("turns", "waited"), lambda f: _percent(f.waited)),
    Column(("compac-", "tions"), lambda f: str(f.compactions)),
    Column(("by", "rule"), lambda f: str(f.fallbacks)),
)

TARGETS: Final = (
    Target("needed later and in view", "≥ 0.97", lambda f: _share(f.in_view), lambda f: (f.in_view or 0) >= 0.97),
    Target("needed later, in view or recalled", "1.000", lambda f: _share(f.found), lambda f: f.found == 1),
    Target("requests with every pin in them", "100 %", lambda f: _percent(f.pinned), lambda f: f.pinned == 1),
    Target("stale values shown as current", "0", lambda f: f"{f.stale}", lambda f: f.stale == 0),
    Target("requests that fit the window", "100 %", lambda f: _percent(f.fits), lambda f: f.fits == 1),
    Target("requests that are valid", "100 %", lambda f: _percent(f.valid), lambda f: f.valid == 1),
    Target("secrets in notes, directives outside", "0", lambda f: str(f.leaks), lambda f: f.leaks == 0),
    Target("same bytes as before, median", "≥ 0.95", lambda f: _share(f.same), lambda f: (f.same or 0) >= 0.95),
    Target("wait with a 20 s summariser, p95", "0 s", lambda f: f"{f.wait:.0f} s", lambda f: f.wait == 0),
)

_SPEAKERS: Final[Mapping[str, str]] = {
    "user": "a person",
    "assistant": "the model",
    "result": "a short tool result only",
    "dump": "a line of a long tool result only",
}


def render(title: str, figures: Mapping[Run, Figures], judged: Sequence[Record]) -> str:
    """The whole report. `judged`: the replays of `JUDGED`, if it was among them."""
    parts = [title, _table("What is kept", KEPT, figures), _table("What it costs", COST, figures)]
    broken = [
        f"  {_name(run)}: turn {f.broke} was the first to fail" for run, f in figures.items() if f.broke is not None
    ]
    if broken:
        parts.append("\n".join(["Where it breaks", *broken]))
    if JUDGED in figures:
        parts.append(_verdicts(figures[JUDGED]))
        parts.append(_breakdown(judged))
    return "\n\n".join(parts) + "\n"


def missed(figures: Figures) -> list[str]:
    """The targets that are not reached."""
    return [target.what for target in TARGETS if not target.reached(figures)]


def _verdicts(figures: Figures) -> str:
    rows = [
        (target.what, target.value(figures), f"goal {target.goal}", "" if target.reached(figures) else "MISSED")
        for target in TARGETS
    ]
    return "\n".join([f"Targets ({' with the '.join(JUDGED)} summariser)", *_aligned(rows, left=(0, 2, 3))])


def _breakdown(records: Sequence[Record]) -> str:
    keys: tuple[tuple[str, Callable[[Need], str]], ...] = (
        ("said by", lambda need: _SPEAKERS[need.fact.speaker]),
        ("kind", lambda need: need.fact.kind),
        ("language", lambda need: need.fact.language),
    )
    rows = []
    for name, key in keys:
        for value, counts in sorted(lost_by(records, key).items()):
            held, found, all_ = counts
            rows.append((name, value, f"{held} of {all_}", _share(held / all_), f"{_share(found / all_)} with recall"))
            name = ""
    return "\n".join(["Needed later and in view, by what it was", *_aligned(rows, left=(0, 1))])


def _table(title: str, columns: Sequence[Column], figures: Mapping[Run, Figures]) -> str:
    head = [("", *(column.heading[0] for column in columns)), (title, *(column.heading[1] for column in columns))]
    rows = [(_name(run), *(column.cell(each) for column in columns)) for run, each in figures.items()]
    lines = _aligned([*head, *rows], left=(0,), indent="")
    return "\n".join([*lines[:2], "-" * max(map(len, lines)), *lines[2:]])


def _aligned(rows: Sequence[Sequence[str]], *, left: Sequence[int], indent: str = "  ") -> list[str]:
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        indent
        + "  ".join(
            f"{cell:<{width}}" if place in left else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in rows
    ]


def _name(run: Run) -> str:
    policy, summariser = run
    return f"{policy}, {summariser}" if summariser else policy


def _share(value: float | None) -> str:
    return _NOTHING if value is None else f"{value:.3f}"


def _percent(value: float | None) -> str:
    """Never rounded up to a whole hundred, nor down to nothing."""
    if value is None:
        return _NOTHING
    if value in (0, 1):
        return f"{value:.0%}"
    return f"{min(0.999, max(0.001, value)):.1%}"
