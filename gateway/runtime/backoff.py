"""Pauses before another attempt."""

from __future__ import annotations

from msgspec import Struct, field

from gateway.runtime.clock import Clock
from gateway.runtime.errors import RateLimited

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


class Rests(Struct, kw_only=True):
    """The rests that a platform asked this process for, each of a chat, say. Calls of every kind keep it, whichever
    was told; the gateway learns of it with the next message."""

    platform: str
    clock: Clock
    _until: dict[str, float] = field(default_factory=dict)  # monotonic

    def heard(self, place: str, error: Exception) -> None:
        """A call ended with this error, which may ask for a rest."""
        if isinstance(error, RateLimited):
            self._until[place] = self.clock.monotonic() + error.retry_after

    def check(self, place: str) -> None:
        """Raise RateLimited while the place is to be left alone."""
        left = self._until.get(place, 0.0) - self.clock.monotonic()
        if left > 0.0:
            raise RateLimited(f"{self.platform} asked to wait, for {left:.0f} s more", retry_after=left)
        self._until.pop(place, None)
