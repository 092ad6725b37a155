"""Figures that benches kept (`tests/bench/figures.json`), drawn: what a message costs, and what a long time does."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any, Final

from tests.bench.figures import kept
from tests.docs.svg import Ink, box, curve, picture, text

_EDGE: Final = 16.0
_LEFT: Final = 56.0  # pixels for the numbers at the side
_TOP: Final = 64.0  # pixels for a chart's title and its curves' names
_FOOT: Final = 42.0  # pixels for the numbers below
_HIGH: Final = 200.0
_WORDS: Final = Ink(fill="#3d4f5e")
_TITLE: Final = Ink(fill="#16324a", bold=True)
_GRID: Final = "#e3e9ee"
_OURS, _THEIRS, _OTHER, _FAINT = "#0b6b5d", "#b3541e", "#3a5fa8", "#7fb5ac"

THEIRS: Final = "hermes-agent"
NAMES: Final = {"ours": "plain", "ours, auto": "auto", "sliding": "sliding window", "none": "never compacted"}
"""What the documents call the ways of `tests.bench.cost`, where that is another name."""
_BARS: Final = {"ours": ("Legato, plain", _FAINT), "ours, auto": ("Legato, auto", _OURS), THEIRS: (THEIRS, _THEIRS)}

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    name: str
    colour: str
    points: Points


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chart:
    """Curves over one another; `steep`: each step of either scale is ten times the one before."""

    title: str
    below: str  # what the numbers below count
    curves: Sequence[_Curve]
    steep: bool = False

    def drawn(self, left: float, wide: float) -> list[str]:
        """At its place, from `left` on."""
        places, heights = ([point[axis] for one in self.curves for point in one.points] for axis in (0, 1))
        across, up = _Scale.over(places, steep=self.steep, from_zero=True), _Scale.over(heights, steep=self.steep)
        x0, x1, y0, y1 = left + _LEFT, left + wide - _EDGE, _EDGE + _TOP + _HIGH, _EDGE + _TOP
        parts = [text(left + _EDGE, _EDGE + 14, self.title, _TITLE, size=13)]
        for number, one in enumerate(self.curves):
            place = left + _EDGE + number % 2 * (wide - _EDGE) / 2
            parts.append(
                text(place, _EDGE + 32 + 16 * (number // 2), one.name, Ink(fill=one.colour, bold=True), size=12)
            )
        for value in up.ticks:
            y = y0 + (y1 - y0) * up.share(value)
            parts += [box(x0, y, x1 - x0, 1, _GRID), text(x0 - 6, y + 4, _short(value), _WORDS, size=11, at="end")]
        for value in across.ticks:
            x = x0 + (x1 - x0) * across.share(value)
            parts.append(text(x, y0 + 16, _short(value), _WORDS, size=11, at="middle"))
        parts.append(text((x0 + x1) / 2, y0 + 34, self.below, _WORDS, size=12, at="middle"))
        for one in self.curves:
            spots = [(x0 + (x1 - x0) * across.share(x), y0 + (y1 - y0) * up.share(y)) for x, y in one.points]
            parts.append(curve(spots, one.colour))
        return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Where values lie between the two ends of an axis (0 to 1)."""

    ticks: Sequence[float]
    steep: bool
    zero: bool

    @classmethod
    def over(cls, values: Sequence[float], *, steep: bool, from_zero: bool = False) -> _Scale:
        """For these. Ten is the first step above zero of a steep one that begins there."""
        most = max(values)
        if steep:
            first = 1 if from_zero else floor(log10(min(values)))
            powers = [10.0**power for power in range(first, max(ceil(log10(most)), first + 1) + 1)]
            zero = from_zero and min(values) < 1
            return cls(ticks=[0.0, *powers] if zero else powers, steep=True, zero=zero)
        step = next(each * 10**power for power in range(-4, 9) for each in (1, 2, 5) if most / (each * 10**power) <= 5)
        return cls(ticks=[step * number for number in range(ceil(most / step) + 1)], steep=False, zero=True)

    def share(self, value: float) -> float:
        """0 at the first tick, 1 at the last."""
        if not self.steep:
            return value / self.ticks[-1]
        first = self.ticks[1] / 10 if self.zero else self.ticks[0]
        return log10(max(value, first) / first) / log10(self.ticks[-1] / first)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 or not value else f"{value:.4f}".rstrip("0")


def _side_by_side(charts: Sequence[_Chart], title: str, wide: float) -> str:
    width, height = wide * len(charts) + _EDGE, _EDGE + _TOP + _HIGH + _FOOT + _EDGE
    parts = [part for number, chart in enumerate(charts) for part in chart.drawn(number * wide, wide)]
    return picture(width, height, title, [box(0, 0, width, height, "#ffffff", radius=10), *parts])


def cost() -> str:
    """CPU of a message against what the gateway knows, and how long a conversation is."""
    found = kept()
    sides = {"ours": ("Legato", _OURS), "theirs": ("hermes-agent 0.19", _THEIRS)}
    sessions = [
        _Curve(name=name, colour=colour, points=_points(rows, "sessions", "cpu", 1_000))
        for side, (name, colour) in sides.items()
        for rows in [[each for each in found["gateways"] if each["side"] == side]]
    ]
    turns = [each for each in found["transcript"] if "messages" in each]
    length = [
        _Curve(name="a whole turn", colour=_OURS, points=_points(turns, "messages", "cpu", 1_000)),
        _Curve(name="without the request's bytes", colour=_OTHER, points=_points(turns, "messages", "without", 1_000)),
    ]
    charts = [
        _Chart(title="CPU of a message, milliseconds", below="known sessions", curves=sessions, steep=True),
        _Chart(title="CPU of a turn, milliseconds", below="messages of the conversation", curves=length, steep=True),
    ]
    return _side_by_side(charts, "What a message costs, against known sessions and a conversation's length", 440)


def spent() -> str:
    """What long conversations cost, as bars: the dollars of each way as a share of hermes-agent's."""
    cases: dict[tuple[int, str], dict[str, float]] = {}
    for each in kept()["spent"]:
        cases.setdefault((each["window"], each["rhythm"]), {})[each["way"]] = each["dollars"]
    title = "What 200 turns cost, as a share of hermes-agent's"
    width, left, step, long = 640.0, 190.0, 62.0, 380.0
    parts = [text(_EDGE, 30, title, _TITLE, size=13)]
    for number, (name, colour) in enumerate(_BARS.values()):
        parts.append(text(_EDGE + 130 * number, 52, name, Ink(fill=colour, bold=True), size=12))
    for row, ((window, rhythm), dollars) in enumerate(cases.items()):
        top = _TOP + step * row
        parts.append(text(_EDGE, top + 28, f"{window:,} tokens, {rhythm}", _WORDS, size=12))
        for number, (way, (_, colour)) in enumerate(_BARS.items()):
            share = dollars[way] / dollars[THEIRS]
            parts.append(box(left, top + 16 * number, long * share, 13, colour, radius=2))
            parts.append(text(left + long * share + 6, top + 16 * number + 11, f"{share:.2f}", _WORDS, size=11))
    height = _TOP + step * len(cases)
    return picture(width, height, title, [box(0, 0, width, height, "#ffffff", radius=10), *parts])


def soak() -> str:
    """Memory, the store's size and waits over a long time."""
    found = kept()
    stores = {name: found[f"soak on {name}"] for name in ("sqlite", "redis") if f"soak on {name}" in found}
    names = {"sqlite": ("SQLite", _OURS), "redis": ("Redis", _OTHER)}

    def of(key: str, factor: float = 1, more: str = "") -> list[_Curve]:
        return [
            _Curve(name=names[name][0] + more, colour=names[name][1], points=_points(rows, "messages", key, factor))
            for name, rows in stores.items()
        ]

    p95 = [
        _Curve(name=f"{one.name}, p95", colour=colour, points=one.points)
        for one, colour in zip(of("p95", 1_000), (_FAINT, "#9db3dc"), strict=False)
    ]
    charts = [
        _Chart(title="Memory of a process, MB", below="messages", curves=of("memory")),
        _Chart(title="Store, MB", below="messages", curves=of("store")),
        _Chart(title="Wait for a reply, milliseconds", below="messages", curves=[*of("p50", 1_000, ", p50"), *p95]),
    ]
    return _side_by_side(charts, "Memory, the store and waits over many messages with compactions", 300)


def _points(rows: Iterable[dict[str, Any]], x: str, y: str, factor: float) -> Points:
    return sorted((each[x], each[y] * factor) for each in rows)
