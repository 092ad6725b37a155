"""What the program did in each of the last 24 hours, only in memory: for the small charts of the operator's page."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import accumulate

from msgspec import Struct, field

from gateway.domain.views import Hour

_KEPT = 24


class _Begun(Struct, frozen=True, kw_only=True):
    """An hour, by its number since the epoch, and what had been counted when it began."""

    number: int
    before: tuple[float, ...]


class Hours(Struct, kw_only=True):
    """What was counted in the last hours: turns, in intervals with these `bounds` (seconds), how full windows were, in
    intervals of `shares`, and what was spent."""

    bounds: Sequence[float]
    shares: Sequence[float] = ()
    _begun: deque[_Begun] = field(default_factory=lambda: deque(maxlen=_KEPT))
    _counts: tuple[float, ...] = ()

    def note(
        self,
        now: float,
        turns: Iterable[Sequence[float]],
        windows: Iterable[Sequence[float]] = (),
        usd: float = 0.0,
        tokens: float = 0.0,
    ) -> None:
        """Take up what was counted by now (seconds since the epoch): of each series the sum, then its intervals."""
        counts = (*_summed(turns, self.bounds), *_summed(windows, self.shares), usd, tokens)
        number = int(now // 3_600)
        if not self._begun or number > self._begun[-1].number:
            self._begun.append(_Begun(number=number, before=self._counts or (0.0,) * len(counts)))
        self._counts = counts

    def all(self) -> list[Hour]:
        """The hours since the start, oldest first; those in which the machine slept are left out."""
        ends = [*[each.before for each in self._begun], self._counts][1:]
        return [self._hour(each, end) for each, end in zip(self._begun, ends, strict=True)]

    def _hour(self, begun: _Begun, end: Sequence[float]) -> Hour:
        *counts, usd, tokens = [one - other for one, other in zip(end, begun.before, strict=True)]
        lasted, full = counts[: len(self.bounds) + 1], counts[len(self.bounds) + 1 :]
        turns, ended = sum(lasted), zip((*self.bounds, None), accumulate(lasted), strict=True)
        return Hour(
            began_at=begun.number * 3_600,
            turns=round(turns),
            within=next(bound for bound, count in ended if count >= 0.95 * turns) if turns else 0.0,
            usd=usd,
            tokens=round(tokens),
            fullest=max((share for share, count in zip((*self.shares, 1.0), full, strict=True) if count), default=0.0),
        )


def _summed(series: Iterable[Sequence[float]], bounds: Sequence[float]) -> list[float]:
    """How often each interval was counted, in all series together."""
    return [sum(counts) for counts in zip([0.0] * (len(bounds) + 1), *(each[1:] for each in series), strict=True)]
