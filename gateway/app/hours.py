"""What the program did in each of the last 24 hours, only in memory: for the small charts of the operator's page."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from msgspec import Struct, field

from gateway.domain.views import Hour

_KEPT = 24


class _Begun(Struct, frozen=True, kw_only=True):
    """An hour, by its number since the epoch, and how many turns had lasted how long when it began."""

    number: int
    before: tuple[float, ...]


class Hours(Struct, kw_only=True):
    """The turns of the last hours. `bounds`: in seconds, of the intervals in which they are counted."""

    bounds: Sequence[float]
    _begun: deque[_Begun] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _counts: tuple[float, ...] = ()

    def note(self, now: float, series: Iterable[Sequence[float]]) -> None:
        """Take up what was counted by now (seconds since the epoch): of each series the sum, then its intervals."""
        counts = [0.0] * (len(self.bounds) + 1)
        for _, *intervals in series:
            counts = [one + other for one, other in zip(counts, intervals, strict=True)]
        number = int(now // 3_600)
        if not self._begun or number > self._begun[-1].number:
            self._begun.append(_Begun(number=number, before=self._counts or (0.0,) * len(counts)))
        self._counts = tuple(counts)

    def all(self) -> list[Hour]:
        """The hours since the start, oldest first; those in which the machine slept are left out."""
        ends = [*[each.before for each in self._begun], self._counts][1:]
        return [self._hour(each, end) for each, end in zip(self._begun, ends, strict=True)]

    def _hour(self, begun: _Begun, end: Sequence[float]) -> Hour:
        counts = [one - other for one, other in zip(end, begun.before, strict=True)]
        turns, passed = sum(counts), 0.0
        for bound, count in zip((*self.bounds, None), counts, strict=True):
            passed += count
            if turns and passed >= 0.95 * turns:
                return Hour(began_at=begun.number * 3_600, turns=round(turns), within=bound)
        return Hour(began_at=begun.number * 3_600, turns=0, within=0.0)
