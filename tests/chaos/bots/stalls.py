"""The stalls of a process on a busy machine: a process cannot know messages that it has not read yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from tests.chaos.clocks import PACE

_TICK: Final = 0.02  # real seconds

Stall = tuple[float, float]
"""From when to when, in seconds of the hurried clock, which is the same in all processes."""


async def watch(note: Callable[[Stall], None], beat: Callable[[float], None] = lambda _: None) -> None:
    """Note each time this process stands still, until cancelled; `beat` is told each moment at which it does not."""
    begun = time.monotonic()
    while True:
        await asyncio.sleep(_TICK)
        ended = time.monotonic()
        if ended - begun > 1.5 * _TICK:  # many small stalls make a long one
            note((begun * PACE, ended * PACE))
        beat(ended * PACE)
        begun = ended


class Beat:
    """The last moment at which a process did not stand still, in a file: one that is killed while it does notes no
    stall."""

    def __init__(self, folder: Path, number: int) -> None:
        self._path = folder / f"beat-{number}"

    def keep(self, at: float) -> None:
        """It is going at this moment of the hurried clock."""
        self._path.write_text(str(at))

    def last(self) -> float | None:
        """Return the moment; None if there was none."""
        text = self._path.read_text() if self._path.exists() else ""
        return float(text) if text else None


def stood_still(stalls: Iterable[Stall], since: float, until: float) -> float:
    """Return the seconds of stalls between two moments; two processes may stand still one after the other."""
    return sum(max(0.0, min(ended, until) - max(begun, since)) for begun, ended in stalls)
