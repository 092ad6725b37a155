"""Notices about the gateway's own troubles, and limits on how often they are repeated."""

from __future__ import annotations

from collections import deque

from msgspec import Struct, field

from gateway.delivery.outbox import Outbox
from gateway.domain.chat import SessionKey
from gateway.runtime.errors import StoreUnavailable
from gateway.store.records import InboxItem

CANNOT_STORE = "I cannot store my work right now ({error}). I keep trying, and nothing is lost."

_REMEMBERED = 10_000  # keys


def tell_of_outage(outbox: Outbox, item: InboxItem, error: StoreUnavailable) -> None:
    """Tell the person that their item waits for the store, which cannot store this notice either."""
    outbox.announce(item, "error", CANNOT_STORE.format(error=error))


class Throttle(Struct, kw_only=True):
    """A notice that a key gets at most once in `every` seconds. `told`: when each key was last told."""

    every: float = 30.0
    told: dict[SessionKey, float] = field(default_factory=dict)

    def due(self, key: SessionKey, now: float) -> bool:
        """Whether the key may be told at `now` (monotonic). If so, it counts as told."""
        if now - self.told.get(key, -self.every) < self.every:
            return False
        if len(self.told) > _REMEMBERED:
            self.told = {other: at for other, at in self.told.items() if now - at < self.every}
        self.told[key] = now
        return True

    def left(self, key: SessionKey, now: float) -> float:
        """Seconds until the key may be told again."""
        return max(0.0, self.told.get(key, -self.every) + self.every - now)

    def forget(self, key: SessionKey) -> None:
        """The key could not be told, so it may be told again."""
        self.told.pop(key, None)


class Quota(Struct, kw_only=True):
    """A limit for each key: at most `most` times in `seconds`."""

    most: int
    seconds: float
    _taken: dict[SessionKey, deque[float]] = field(default_factory=dict)

    def left(self, key: SessionKey, now: float) -> int:
        """How many more times are allowed at `now` (monotonic)."""
        taken = self._taken.get(key)
        while taken and now - taken[0] >= self.seconds:
            taken.popleft()
        return self.most - len(taken or ())

    def take(self, key: SessionKey, now: float) -> None:
        """Count one time."""
        if len(self._taken) > _REMEMBERED:
            self._taken = {
                other: taken for other, taken in self._taken.items() if taken and now - taken[-1] < self.seconds
            }
        self._taken.setdefault(key, deque(maxlen=self.most)).append(now)
