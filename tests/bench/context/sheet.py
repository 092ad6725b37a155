"""The figures of conversations of one window as tables that fit a terminal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.bench.context.drive import DEPTHS, Probe, Record

_COLUMNS: Final = (
    ("", ""),
    ("needed:", "in view"),
    ("after", "1"),
    ("", "3"),
    ("", "10"),
    ("", "30"),
    ("or one", "search"),
    ("rules", "in view"),
    ("shown", "stale"),
    ("size: after", "a pass"),
    ("when", "needed"),
    ("", "passes"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """One conversation: the record of each policy, and whether one search shows what a turn needs."""

    seed: int
    messages: int
    tokens: int
    records: Mapping[str, Record]
    found: Mapping[tuple[int, int], bool]


def render(window: int, sheets: Sequence[Sheet]) -> str:
    """A table of what each policy keeps, and one of what ours keeps by kind."""
    threshold = next(iter(sheets[0].records.values())).threshold
    head = (
        f"Window of {window:,} tokens, threshold {threshold:,}; seeds {', '.join(str(each.seed) for each in sheets)}: "
        f"{sum(each.messages for each in sheets):,} messages, {sum(each.tokens for each in sheets):,} tokens"
    )
    rows = [[column[0] for column in _COLUMNS], [column[1] for column in _COLUMNS]]
    rows += [_row(name, sheets) for name in sheets[0].records]
    parts = [head, aligned(rows)]
    judged = next((name for name in ("ours, extractive", *sheets[0].records) if name in sheets[0].records), "")
    parts.append(f"{judged}, by what was needed\n" + aligned(_by_kind(judged, sheets)))
    return "\n".join(parts)


def _row(name: str, sheets: Sequence[Sheet]) -> list[str]:
    records = [each.records[name] for each in sheets]
    values = [probe for record in records for probe in record.probes if probe.way != "rule"]
    rules = [probe for record in records for probe in record.probes if probe.way == "rule"]
    passes = [size / record.threshold for record in records for size in record.passes]
    sizes = [probe.size / record.threshold for record in records for probe in record.probes]
    reached = [
        probe.in_view or each.found[probe.where]
        for each in sheets
        for probe in each.records[name].probes
        if probe.way != "rule"
    ]
    return [
        name,
        _share([probe.in_view for probe in values]),
        *(_share([probe.in_view for probe in values if probe.depth == depth]) for depth in DEPTHS),
        _share(reached),
        _share([probe.in_view for probe in rules]),
        f"{sum(record.stale for record in records)}/{sum(record.replaced for record in records)}",
        _mean(passes),
        _mean(sizes),
        str(len(passes)),
    ]


def _by_kind(name: str, sheets: Sequence[Sheet]) -> list[list[str]]:
    rows = []
    keys: tuple[tuple[str, Callable[[Probe], str]], ...] = (
        ("asked by", lambda probe: probe.way),
        ("value", lambda probe: probe.kinds[0]),
    )
    for title, key in keys:
        groups: dict[str, list[tuple[bool, bool]]] = {}
        for each in sheets:
            for probe in each.records[name].probes:
                groups.setdefault(key(probe), []).append((probe.in_view, probe.in_view or each.found[probe.where]))
        for value, seen in sorted(groups.items()):
            shares = [_share([held for held, _ in seen]), _share([found for _, found in seen])]
            rows.append([title, value, f"{len(seen)}", f"in view {shares[0]}", f"or one search {shares[1]}"])
            title = ""
    return rows


def _share(values: Sequence[bool]) -> str:
    return _mean([float(value) for value in values])


def _mean(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.2f}" if values else "-"


def aligned(rows: Sequence[Sequence[str]]) -> str:
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            f"{cell:<{width}}" if place == 0 else f"{cell:>{width}}"
            for place, (cell, width) in enumerate(zip(row, wide, strict=True))
        ).rstrip()
        for row in rows
    )
