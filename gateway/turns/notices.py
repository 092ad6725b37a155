"""How often a person is told the same thing."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.domain.chat import SessionKey

_REMEMBERED = 10_000  # keys, before those told long ago are forgotten


@dataclass(slots=True, kw_only=True)
class Throttle:
    """Something that a key is told at most once in `every` seconds."""

    every: float
    _told: dict[SessionKey, float] = field(default_factory=dict)

    def due(self, key: SessionKey, now: float) -> bool:
        """Whether it may be said at `now` (monotonic); if so, it counts as said."""
        if now - self._told.get(key, -self.every) < self.every:
            return False
        if len(self._told) > _REMEMBERED:
            self._told = {other: at for other, at in self._told.items() if now - at < self.every}
        self._told[key] = now
        return True
