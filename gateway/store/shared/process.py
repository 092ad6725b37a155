"""What a store remembers in its process, whichever database holds the facts. Event loop only."""

from __future__ import annotations

from collections.abc import Callable, Collection

from gateway.domain.chat import SessionKey
from gateway.runtime.clock import Clock
from gateway.store.records import SignalKind
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
    """The platforms that this process serves, the transcripts that it has read, and the listeners."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.time = SteadyTime(clock)
        self.transcripts = TranscriptCache()
        self.runs, self.sends = Platforms(), Platforms()
        self.signal_listeners: list[Callable[[SessionKey, SignalKind], None]] = []
        self.decided_listeners: list[Callable[[SessionKey], None]] = []
        self.rows_listeners: list[Callable[[], None]] = []
        self.left_listeners: list[Callable[[], None]] = []

    def serve(self, *, runs: Collection[str], sends: Collection[str]) -> None:
        """From now on this process runs lanes of some platforms, and sends to some."""
        self.runs, self.sends = Platforms(runs), Platforms(sends)

    def tell_signal(self, key: SessionKey, kind: SignalKind) -> None:
        """A signal was left for the item that runs under this key."""
        for listener in self.signal_listeners:
            listener(key, kind)

    def tell_decided(self, key: SessionKey) -> None:
        """A question of this key was decided."""
        for listener in self.decided_listeners:
            listener(key)

    def tell_rows(self) -> None:
        """There may be rows to claim that this process does not know of."""
        for listener in self.rows_listeners:
            listener()

    def tell_left(self) -> None:
        """Another process left items for `claim_bypassed` or `pending_hooks`."""
        for listener in self.left_listeners:
            listener()
