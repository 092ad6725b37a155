"""One conversation's window over time: all that was said, and what of it is in view, compaction by compaction."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from gateway.runtime.tokens import TokenCounter
from tests.bench.context.customers import write
from tests.bench.context.drive import OVERHEAD, POLICIES, size_of, span_of, threshold_of
from tests.docs.svg import Ink, box, picture, text

WINDOW: Final = 32_768  # tokens
_SEED: Final = 1
_POLICY: Final = "ours, empty: by rule"  # the same notes on every machine
_LENGTH: Final = 8.0  # compactions, about

_WIDTH, _HIGH, _EDGE = 900.0, 300.0, 64.0
_WORDS: Final = Ink(fill="#3d4f5e")
_SAID, _VIEW, _MARK = "#c9d3db", "#0b6b5d", "#b58a00"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """After a turn: how many tokens were said in all, and how many the next request holds."""

    said: int
    view: int


def drawn() -> str:
    """The picture, and the figures of the conversation in its title."""
    moments, passes = asyncio.run(_lived())
    most = moments[-1].said
    step = (_WIDTH - 2 * _EDGE) / (len(moments) - 1)

    def at(tokens: int) -> float:
        """The height of a number of tokens; what is above the window is drawn smaller."""
        inside, above = min(tokens, WINDOW) / WINDOW, max(0, tokens - WINDOW) / max(1, most - WINDOW)
        return _EDGE + _HIGH * (1 - 0.72 * inside - 0.28 * above)

    title = (
        f"A conversation of {len(moments):,} turns and {most:,} tokens in a window of {WINDOW:,}: "
        f"{passes} compactions, and the view never holds more than {max(each.view for each in moments):,}"
    )
    lines = [
        _line([at(each.said) for each in moments], step, _SAID, 2),
        _level(at(WINDOW), "#8796a3", f"the window, {WINDOW:,} tokens"),
        _level(at(threshold_of(WINDOW)), _MARK, f"compacted at {threshold_of(WINDOW):,}"),
        _line([at(each.view) for each in moments], step, _VIEW, 2.5),
        text(_EDGE, _EDGE - 34, title, _WORDS, size=13),
        text(
            _EDGE, _EDGE - 14, "all that was said (above the window on a smaller scale)", Ink(fill="#8796a3"), size=12
        ),
        text(_WIDTH - _EDGE, _EDGE - 14, "what the model sees", Ink(fill=_VIEW, bold=True), size=12, at="end"),
        text(_EDGE, _EDGE + _HIGH + 20, "turn 1", _WORDS, size=12),
        text(_WIDTH - _EDGE, _EDGE + _HIGH + 20, f"turn {len(moments):,}", _WORDS, size=12, at="end"),
    ]
    high = 2 * _EDGE + _HIGH - 24
    return picture(_WIDTH, high, title, [box(0, 0, _WIDTH, high, "#ffffff", radius=10), *lines])


async def _lived() -> tuple[list[Moment], int]:
    """Lead the engine through the conversation of a seed."""
    counter = TokenCounter()
    life = write(_SEED, span_of(WINDOW), counter, length=_LENGTH)
    policy = next(each for each in POLICIES if each.name == _POLICY)
    keeper = policy.keeper(life, WINDOW, counter)
    moments, said = [Moment(said=0, view=OVERHEAD)], 0
    for turn in life.turns:
        for message in turn.messages:
            keeper.transcript.append(message)
            said += size_of([message])
            if message["role"] in ("user", "tool"):
                await keeper.fit()
        moments.append(Moment(said=said, view=size_of(keeper.transcript) + OVERHEAD))
    return moments, len(keeper.passes)


def _line(heights: Sequence[float], step: float, colour: str, wide: float) -> str:
    points = " ".join(f"{_EDGE + number * step:.1f},{height:.1f}" for number, height in enumerate(heights))
    return f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{wide}"/>'


def _level(height: float, colour: str, words: str) -> str:
    line = (
        f'<line x1="{_EDGE}" x2="{_WIDTH - _EDGE}" y1="{height:.1f}" y2="{height:.1f}" stroke="{colour}" '
        'stroke-dasharray="5 4"/>'
    )
    return line + text(_WIDTH - _EDGE, height - 5, words, Ink(fill=colour), size=11, at="end")
