"""Pauses before another attempt."""

from __future__ import annotations

from msgspec import Struct

_MOST_DOUBLINGS = 30  # what is doubled more often than that is no number that a float holds


class Backoff(Struct):
    """The pauses between attempts at one thing: `first` seconds, then each twice as long as the one before, at most
    `longest`. `failures`: how many attempts have failed in a row."""

    first: float
    longest: float
    failures: int = 0

    def pause(self) -> float:
        """Another attempt has failed: the seconds to wait before the next."""
        pause = min(self.first * 2.0 ** min(self.failures, _MOST_DOUBLINGS), self.longest)
        self.failures += 1
        return pause

    def reset(self) -> None:
        """An attempt has succeeded."""
        self.failures = 0
