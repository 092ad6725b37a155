"""Charts as SVG, made on the server: a page shows them without a script."""

from __future__ import annotations

from collections.abc import Sequence

from adapters.web.markup import Html, el
from gateway.domain.views import LineageLink, WindowShares

_WIDE = 640
_PARTS = ("system", "memory", "rules", "tools", "summary", "conversation", "project")
_CHAIN: int = 92  # from one session of a lineage to the next


def part_of(name: str) -> str:
    """The class of a part of the window: each kind has its colour, whichever others are there."""
    return f"part-{_PARTS.index(name.split()[0])}"


def bar(shares: WindowShares) -> Html:
    """What fills the window, and where compaction comes."""
    parts: list[Html] = []
    at = 0.0
    for name, tokens in shares.parts:
        width = 100 * max(0, tokens) / shares.window
        wide = f"{min(width, 100 - at):.2f}"
        parts.append(el("rect", x=f"{at:.2f}", width=wide, height=8, class_=f"part {part_of(name)}"))
        at = min(100.0, at + width)
    if shares.threshold and shares.automatic:
        mark = 100 * shares.threshold / shares.window
        parts.append(el("line", x1=f"{mark:.2f}", x2=f"{mark:.2f}", y1=0, y2=8, class_="mark"))
    return _strip(parts, f"{shares.used:,} of {shares.window:,} tokens of the window are used", "bar")


def meter(used: int, window: int) -> Html:
    """How full a window is."""
    share = min(100.0, 100 * used / max(1, window))
    part = el("rect", width=f"{share:.2f}", height=8, class_="part part-0")
    return _strip([part], f"{share:.0f}% of the window", "meter")


def _strip(parts: Sequence[Html], label: str, class_: str) -> Html:
    """A strip of 100 units, on its ground."""
    box = {"viewBox": "0 0 100 8", "preserveAspectRatio": "none"}
    ground = el("rect", width=100, height=8, class_="ground")
    return el("svg", ground, parts, **box, role="img", aria_label=label, class_=class_)


def columns(values: Sequence[float], told: Sequence[str], label: str, most: float = 0.0) -> Html:
    """Small columns, each with its own words; `most`: the value of the highest, unless one is higher."""
    most, places = max([*values, most, 1e-9]), max(14, len(values))  # the first hour of a program is no wall
    step = 100 / places
    parts = [
        el("rect", x=f"{(number + 0.1) * step:.2f}", y=27, width=f"{0.8 * step:.2f}", height=1, class_="ground")
        for number in range(places - len(values))
    ]
    for number, (value, words) in enumerate(zip(values, told, strict=True), places - len(values)):
        high = max(1.0, 26 * value / most) if value else 1.0
        at = {"x": f"{number * step + 0.1 * step:.2f}", "y": f"{28 - high:.2f}"}
        size = {"width": f"{0.8 * step:.2f}", "height": f"{high:.2f}"}
        shown = el("rect", **at, **size, class_="part" if value else "ground")
        over = el("rect", x=at["x"], y=0, width=size["width"], height=28, class_="over")
        parts.append(el("g", el("title", words), shown, over))
    box = {"viewBox": "0 0 100 28", "preserveAspectRatio": "none"}
    return el("svg", parts, **box, role="img", aria_label=label, class_="columns-chart")


def lineage(links: Sequence[LineageLink]) -> Html:
    """A chain of continuations, root first, with the tokens before and after each compaction."""
    shown = links[-7:]
    parts = []
    for number, link in enumerate(shown):
        x = number * _CHAIN + 24
        if number:
            told = f"{link.before:,} → {link.after:,}"
            parts.append(el("line", x1=x - _CHAIN + 12, y1=26, x2=x - 12, y2=26, class_="mark"))
            parts.append(el("text", told, x=x - _CHAIN / 2, y=14, text_anchor="middle"))
        title = el("title", f"{link.id}: {link.messages} messages")
        parts.append(el("g", title, el("circle", cx=x, cy=26, r=10, class_="part")))
        parts.append(el("text", link.messages, x=x, y=50, text_anchor="middle"))
    told = f"{len(links)} sessions from first to last, with tokens before and after each compression"
    return el("svg", parts, viewBox=f"0 0 {_WIDE} 56", role="img", aria_label=told, class_="chart")
