"""The shortest schedule that still fails: parts of it are left out, and what still fails is kept.

Runs are not reproducible to the microsecond, so a schedule that did not fail may be one that would
have: what is found is short and fails, not certainly the shortest there is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

S = TypeVar("S")


@dataclass(slots=True, kw_only=True)
class Shrinking(Generic[S]):
    """Leaves parts out of the tuples that `fields` name, in their order. `fails` carries a schedule out;
    it is asked at most `runs` times, each candidate up to `tries` times."""

    fields: Sequence[str]
    fails: Callable[[S], Awaitable[bool]]
    runs: int = 40
    tries: int = 2

    async def shortest(self, schedule: S) -> S:
        """Return the shortest schedule that still fails."""
        for name in self.fields:
            schedule = await self._shorter(schedule, name)
        return schedule

    async def _shorter(self, schedule: S, name: str) -> S:
        parts: tuple[Any, ...] = getattr(schedule, name)
        size = len(parts)
        while size and self.runs > 0:
            first = 0
            while first < len(parts) and self.runs > 0:
                fewer = parts[:first] + parts[first + size :]
                candidate: S = replace(schedule, **{name: fewer})  # type: ignore[type-var]
                if await self._still_fails(candidate):
                    schedule, parts = candidate, fewer
                else:
                    first += size
            size = min(size // 2, len(parts))
        return schedule

    async def _still_fails(self, candidate: S) -> bool:
        for _ in range(min(self.tries, self.runs)):
            self.runs -= 1
            if await self.fails(candidate):
                return True
        return False
