"""The pace at which rows go out, and leases that belong to no lane. If one process owns the store, these steps work on
memory, because nothing of this has to outlive it."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Final

from gateway.domain.adapter import GRACE, Rate, earliest
from gateway.runtime.structs import replace
from gateway.store.kinds import BUCKET, HOLD, IDLE, MOMENTS, TICKET, Bucket, Hold, Ticket
from gateway.store.space import MANY, Space

_MANY: Final = 4_096  # buckets and tickets, after which those that hold nobody back are dropped


def take(space: Space, account: str, ticket: str, rates: Sequence[Rate], now: float) -> float:
    """Seconds until the ticket's moment; at 0.0 the ticket is used up."""
    _forget(space, now)
    buckets = [_bucket(space, account, rate, now) for rate in rates]
    start = max([now, *(bucket.silent_until for bucket in buckets)])
    known = space.get(TICKET, f"{account} {ticket}")
    space.drop(TICKET, f"{account} {ticket}")
    moment = None if known is None else known.moment
    if moment is not None and (moment + GRACE < now or start > max(now, moment)):
        buckets = [_without(bucket, moment) for bucket in buckets]
        moment = None
    if moment is None:
        moment = earliest([bucket.taken for bucket in buckets], rates, start)
        buckets = [_with(bucket, moment, rate) for bucket, rate in zip(buckets, rates, strict=True)]
    for bucket in buckets:
        space.put(BUCKET, bucket)
    if moment > now:
        space.put(TICKET, Ticket(name=f"{account} {ticket}", moment=moment))
    return max(0.0, moment - now)


def _bucket(space: Space, account: str, rate: Rate, now: float) -> Bucket:
    known = _known(space, account, rate.bucket)
    return replace(known, taken=known.taken[bisect_left(known.taken, now - max(rate.seconds, GRACE)) :])


def _known(space: Space, account: str, bucket: str) -> Bucket:
    return space.get(BUCKET, f"{account} {bucket}") or Bucket(name=f"{account} {bucket}")


def _with(bucket: Bucket, moment: float, rate: Rate) -> Bucket:
    taken = list(bucket.taken)
    insort(taken, moment)
    return replace(bucket, taken=tuple(taken), idle_from=max(bucket.idle_from, moment + rate.seconds))


def _without(bucket: Bucket, moment: float) -> Bucket:
    taken = list(bucket.taken)
    if moment in taken:
        taken.remove(moment)
    return replace(bucket, taken=tuple(taken))


def _forget(space: Space, now: float) -> None:
    """Drop tickets and buckets that nobody will ask for any more."""
    if space.count(MOMENTS, "") + space.count(IDLE, "") > _MANY:
        for ticket in space.first(MOMENTS, "", MANY, before=now - GRACE):
            space.drop(TICKET, ticket.name)
        for bucket in space.first(IDLE, "", MANY, before=now):
            space.drop(BUCKET, bucket.name)


def hold_off(space: Space, account: str, bucket: str, until: float) -> None:
    """Let no moment of this bucket come before `until`."""
    known = _known(space, account, bucket)
    silent_until, idle_from = max(known.silent_until, until), max(known.idle_from, until)
    space.put(BUCKET, replace(known, silent_until=silent_until, idle_from=idle_from))


def resting(space: Space, account: str, bucket: str, now: float) -> float:
    """Remaining seconds of silence."""
    return max(0.0, _known(space, account, bucket).silent_until - now)


def hold(space: Space, name: str, holder: str, now: float, seconds: float) -> bool:
    """Take or renew a lease; False if someone else holds it."""
    known = space.get(HOLD, name)
    if known is not None and known.holder != holder and known.until > now:
        return False
    space.put(HOLD, Hold(name=name, holder=holder, until=now + seconds))
    return True


def let_go(space: Space, name: str, holder: str) -> None:
    """Give back `holder`'s lease."""
    known = space.get(HOLD, name)
    if known is not None and known.holder == holder:
        space.drop(HOLD, name)
