"""Ids that hold the moment at which they were made.

Source: https://discord.com/developers/docs/reference#snowflakes: milliseconds since 2015 above 22 bits of worker,
process and increment.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from gateway.runtime.clock import Clock

EPOCH: Final = 1_420_070_400_000  # milliseconds from 1970 to the first second of 2015
_SHIFT: Final = 22


class Snowflakes:
    """Fresh ids, each above all before it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last = 0

    def new(self) -> int:
        """An id of this moment."""
        self._last = max(self._last + 1, snowflake_at(self._clock.now()))
        return self._last


def snowflake_at(moment: float) -> int:
    """The smallest id of a moment (seconds since 1970)."""
    return (int(moment * 1000) - EPOCH) << _SHIFT


def moment_of(snowflake: int) -> float:
    """Return the moment when an id was made, in seconds since 1970."""
    return ((snowflake >> _SHIFT) + EPOCH) / 1000


def timestamp(moment: float) -> str:
    """A moment as ISO 8601, as everywhere in the API."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="microseconds")
