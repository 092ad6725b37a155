"""Small parts of SVG, so that a picture is plain text: the same session gives the same file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal
from xml.sax.saxutils import escape

MONOSPACED: Final = "ui-monospace,SFMono-Regular,Menlo,Consolas,'Liberation Mono',monospace"
SANS: Final = "Helvetica,Arial,'Liberation Sans',sans-serif"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ink:
    """The looks of a piece of text."""

    fill: str
    bold: bool = False
    italic: bool = False
    mono: bool = False
    underline: bool = False


def picture(width: float, height: float, title: str, parts: list[str]) -> str:
    """A whole file. `title` is read to those who cannot see the picture."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_number(width)} {_number(height)}" '
        f'width="{_number(width)}" height="{_number(height)}" role="img">'
    )
    return "\n".join([head, f"<title>{escape(title)}</title>", *parts, "</svg>"]) + "\n"


def box(x: float, y: float, width: float, height: float, fill: str, *, radius: float = 0) -> str:
    """A rectangle, with round corners if so wished."""
    place = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
    return f'<rect {place} rx="{_number(radius)}" fill="{fill}"/>'


def image(x: float, y: float, width: float, height: float, data: str) -> str:
    """A picture of points, as a data address."""
    place = f'x="{_number(x)}" y="{_number(y)}" width="{_number(width)}" height="{_number(height)}"'
    return f'<image {place} preserveAspectRatio="xMidYMid slice" href="{data}"/>'


def disc(x: float, y: float, radius: float, fill: str) -> str:
    """A filled circle."""
    return f'<circle cx="{_number(x)}" cy="{_number(y)}" r="{_number(radius)}" fill="{fill}"/>'


def curve(points: Sequence[tuple[float, float]], colour: str, width: float = 2) -> str:
    """A line through the points."""
    places = " ".join(f"{_number(x)},{_number(y)}" for x, y in points)
    return f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="{_number(width)}"/>'


def text(
    x: float,
    y: float,
    words: str,
    ink: Ink,
    *,
    size: float,
    width: float | None = None,
    at: Literal["start", "middle", "end"] = "start",
) -> str:
    """Text on the base line `y`, with its start, middle or end at `x`. `width` is what it takes whatever the reader's
    font, as far as the viewer keeps to that: some do not."""
    anchor = "" if at == "start" else f' text-anchor="{at}"'
    return f"<text {_place(x, y, width)} {_style(ink, size)}{anchor}>{escape(words)}</text>"


def flow(x: float, y: float, pieces: Sequence[tuple[str, Ink, float]], width: float) -> str:
    """Text of several looks on one line, each piece with its size; it begins where the one before ends, in any font."""
    spans = "".join(f"<tspan {_style(ink, size)}>{escape(words)}</tspan>" for words, ink, size in pieces)
    return f"<text {_place(x, y, width)}>{spans}</text>"


def _place(x: float, y: float, width: float | None) -> str:
    stated = "" if width is None else f' textLength="{_number(width)}" lengthAdjust="spacingAndGlyphs"'
    return f'x="{_number(x)}" y="{_number(y)}" xml:space="preserve"{stated}'


def _style(ink: Ink, size: float) -> str:
    style = [f'font-family="{MONOSPACED if ink.mono else SANS}"', f'font-size="{_number(size)}"', f'fill="{ink.fill}"']
    style += ['font-weight="bold"'] * ink.bold + ['font-style="italic"'] * ink.italic
    return " ".join([*style, *['text-decoration="underline"'] * ink.underline])


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Parts that are there from one second of a moving picture on."""

    parts: list[str]
    since: float


def moving(scenes: Sequence[Scene], seconds: float) -> list[str]:
    """The parts of a picture that begins anew after so many seconds. Who asked their system for less motion sees the
    end of it, standing still."""
    rules = [
        f".s{{animation:{_number(seconds)}s step-end infinite}}",
        "@media (prefers-reduced-motion:reduce){.s{animation:none}}",
    ]
    groups: list[str] = []
    for number, scene in enumerate(scenes):
        steps = f"{_number(100 * scene.since / seconds)}%{{opacity:1}}100%{{opacity:1}}"
        rules.append(f"@keyframes k{number}{{{'0%{opacity:0}' if scene.since else ''}{steps}}}")
        groups += [f'<g class="s" style="animation-name:k{number}">', *scene.parts, "</g>"]
    return [f"<style>{''.join(rules)}</style>", *groups]
