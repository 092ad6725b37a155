"""What a store remembers in the process that opened it, wherever it keeps its facts. Event loop only."""

from __future__ import annotations

from collections.abc import Callable, Collection

from gateway.domain.chat import SessionKey
from gateway.runtime.clock import Clock
from gateway.store.records import InboxItem, SignalKind
from gateway.store.shared.agenda import Agenda
from gateway.store.shared.platforms import Platforms
from gateway.store.shared.transcripts import TranscriptCache


class SteadyTime:
    """The time by which rows that were put off are due, in seconds since the epoch: as it was when this began, and
    as it passed since, whatever a clock is set to.

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


class Process:
    """The platforms it serves, what waits for a time, what it has read, and who listens."""

    def __init__(self, clock: Clock, cached_messages: int) -> None:
        self.clock = clock
        self.time = SteadyTime(clock)
        self.transcripts = TranscriptCache(cached_messages)
        self.agenda = Agenda()
        self.runs, self.sends = Platforms(), Platforms()
        self.bypassed: list[InboxItem] = []  # that nobody was handed
        self.signal_listeners: list[Callable[[SessionKey, SignalKind], None]] = []
        self.decided_listeners: list[Callable[[SessionKey], None]] = []
        self.rows_listeners: list[Callable[[], None]] = []
        self.left_listeners: list[Callable[[], None]] = []

    def serve(self, *, runs: Collection[str], sends: Collection[str]) -> None:
        """From now on it runs lanes of some platforms and sends to some."""
        self.runs, self.sends = Platforms(runs), Platforms(sends)
        self.agenda.serve(self.sends)

    def tell_signal(self, key: SessionKey, kind: SignalKind) -> None:
        """A signal was left for the item that runs under this key."""
        for listener in self.signal_listeners:
            listener(key, kind)

    def tell_decided(self, key: SessionKey) -> None:
        """A question of this key was decided."""
        for listener in self.decided_listeners:
            listener(key)

    def tell_rows(self) -> None:
        """There may be rows to claim that no step of this process has put off."""
        for listener in self.rows_listeners:
            listener()

    def tell_left(self) -> None:
        """Another process left items to `claim_bypassed` or `pending_hooks`."""
        for listener in self.left_listeners:
            listener()
