"""Leases, and moments to send at. One process owns the file, so its memory is enough for them."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from gateway.domain.adapter import GRACE, Rate, earliest
from gateway.runtime.clock import Clock

_MANY: Final = 4_096  # buckets and tickets, after which those that hold nobody back are dropped


class Leases:
    """The holder of each lease, and until when by the monotonic clock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, tuple[str, float]] = {}

    def hold(self, name: str, holder: str, seconds: float) -> bool:
        """Take or renew a lease; False: another holder has the lease."""
        now = self._clock.monotonic()
        owner, until = self._held.get(name, (holder, now))
        if owner != holder and until > now:
            return False
        self._held[name] = (holder, now + seconds)
        return True

    def let_go(self, name: str, holder: str) -> None:
        """Give back a lease of `holder`."""
        if name in self._held and self._held[name][0] == holder:
            del self._held[name]


class _Bucket(Struct):
    taken: list[float] = field(default_factory=list)  # ascending
    silent_until: float = 0.0
    idle_from: float = 0.0  # the bucket holds nobody back from then on


class Rates:
    """The moments that were given away, in seconds of the clock that the caller reads."""

    def __init__(self) -> None:
        self._buckets: dict[tuple[str, str], _Bucket] = {}
        self._tickets: dict[tuple[str, str], float] = {}

    def take(self, account: str, ticket: str, rates: Sequence[Rate], now: float) -> float:
        """Seconds until the ticket's moment; 0.0 uses it up."""
        self._forget(now)
        buckets = [self._bucket(account, rate.bucket, now, rate.seconds) for rate in rates]
        start = max([now, *(bucket.silent_until for bucket in buckets)])
        moment = self._tickets.pop((account, ticket), None)
        if moment is not None and (moment + GRACE < now or start > max(now, moment)):
            for bucket in buckets:
                _drop(bucket.taken, moment)
            moment = None
        if moment is None:
            moment = earliest([bucket.taken for bucket in buckets], rates, start)
            for bucket, rate in zip(buckets, rates, strict=True):
                insort(bucket.taken, moment)
                bucket.idle_from = max(bucket.idle_from, moment + rate.seconds)
        if moment > now:
            self._tickets[account, ticket] = moment
        return max(0.0, moment - now)

    def hold_off(self, account: str, bucket: str, until: float) -> None:
        """No moment of this bucket comes before `until`."""
        silent = self._buckets.setdefault((account, bucket), _Bucket())
        silent.silent_until = max(silent.silent_until, until)
        silent.idle_from = max(silent.idle_from, until)

    def resting(self, account: str, bucket: str, now: float) -> float:
        """Seconds of silence that are left."""
        known = self._buckets.get((account, bucket))
        return 0.0 if known is None else max(0.0, known.silent_until - now)

    def _bucket(self, account: str, name: str, now: float, seconds: float) -> _Bucket:
        bucket = self._buckets.setdefault((account, name), _Bucket())
        del bucket.taken[: bisect_left(bucket.taken, now - max(seconds, GRACE))]
        return bucket

    def _forget(self, now: float) -> None:
        """Drop tickets and buckets that nobody can ask for any more."""
        if len(self._tickets) + len(self._buckets) > _MANY:
            self._tickets = {name: moment for name, moment in self._tickets.items() if moment + GRACE >= now}
            self._buckets = {name: each for name, each in self._buckets.items() if each.idle_from > now}


def _drop(taken: list[float], moment: float) -> None:
    place = bisect_left(taken, moment)
    if place < len(taken) and taken[place] == moment:
        del taken[place]
