"""What a store remembers in its process, whichever database holds the facts. Event loop only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from typing import Any

from gateway.runtime.clock import Clock
from gateway.store.shared.platforms import Platforms
from gateway.store.shared.transcripts import TranscriptCache


class SteadyTime:
    """Seconds since the epoch, by which rows are due.

    It passes steadily, whatever happens to the machine's clock. Processes that share a server follow the server's time,
    which each learns again and again. It never goes back, so a row that was due stays due.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ahead: float | None = None  # of the clock that never jumps

    def now(self) -> float:
        """Seconds since the epoch."""
        if self._ahead is None:
            self._ahead = self._clock.now() - self._clock.monotonic()
        return self._ahead + self._clock.monotonic()

    def learn(self, now: float) -> None:
        """The server says that the time is at least `now`."""
        ahead = now - self._clock.monotonic()
        self._ahead = ahead if self._ahead is None else max(self._ahead, ahead)


class Process:
    """The platforms that this process serves, the transcripts that it has read, and who listens to which news."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.time = SteadyTime(clock)
        self.transcripts = TranscriptCache()
        self.runs, self.sends = Platforms(), Platforms()
        self.listeners = defaultdict[str, list[Callable[..., None]]](list)

    def serve(self, *, runs: Collection[str], sends: Collection[str]) -> None:
        """From now on this process runs lanes of some platforms, and sends to some."""
        self.runs, self.sends = Platforms(runs), Platforms(sends)

    def tell(self, topic: str, *words: Any) -> None:
        """Whoever listens hears it."""
        for listener in self.listeners[topic]:
            listener(*words)
