"""The time by which rows that were put off are due: it only goes on, whatever a clock is set to."""

from __future__ import annotations

from gateway.runtime.clock import Clock


class SteadyTime:
    """Seconds since the epoch as they were when this began, and as they passed since.

    What several processes agree on is the time of what they share, their server: each learns it time
    and again. It is never taken back, so that nothing that was due is not due any more.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead: float | None = None  # of the clock that never jumps

    def now(self) -> float:
        """Seconds since the epoch."""
        if self._ahead is None:
            self._ahead = self._clock.now() - self._clock.monotonic()
        return self._ahead + self._clock.monotonic()

    def until(self, moment: float | None) -> float | None:
        """Seconds until a moment, 0.0 if it has come; None stays None."""
        return None if moment is None else max(0.0, moment - self.now())

    def learn(self, now: float) -> None:
        """Somebody whose time counts says that it is `now`, at least."""
        ahead = now - self._clock.monotonic()
        self._ahead = ahead if self._ahead is None else max(self._ahead, ahead)
