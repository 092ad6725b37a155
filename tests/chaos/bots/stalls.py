"""The stalls of a process on a busy machine: a process cannot know messages that it has not read yet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final

from tests.chaos.clocks import PACE

_TICK: Final = 0.02  # real seconds

Stall = tuple[float, float]
"""From when to when, in seconds of the hurried clock, which is the same in all processes."""


async def watch(note: Callable[[Stall], None]) -> None:
    """Note each time this process stands still, until cancelled."""
    begun = time.monotonic()
    while True:
        await asyncio.sleep(_TICK)
        ended = time.monotonic()
        if ended - begun > 2 * _TICK:
            note((begun * PACE, ended * PACE))
        begun = ended


def stood_still(stalls: Iterable[Stall], since: float, until: float) -> float:
    """Return the seconds of stalls between two moments; two processes may stand still one after the other."""
    return sum(max(0.0, min(ended, until) - max(begun, since)) for begun, ended in stalls)
