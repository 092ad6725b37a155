"""Leases within the one process that owns the file: memory is enough."""

from __future__ import annotations

from gateway.runtime.clock import Clock


class Leases:
    """Who holds what, and until when by the monotonic clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, tuple[str, float]] = {}

    def hold(self, name: str, holder: str, seconds: float) -> bool:
        """Take or renew; False if somebody else has it."""
        now = self._clock.monotonic()
        owner, until = self._held.get(name, (holder, now))
        if owner != holder and until > now:
            return False
        self._held[name] = (holder, now + seconds)
        return True

    def let_go(self, name: str, holder: str) -> None:
        """Give back what `holder` has."""
        if name in self._held and self._held[name][0] == holder:
            del self._held[name]
