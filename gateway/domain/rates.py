"""The rates at which a platform lets a bot send, and the time of the next message.

A limit is kept exactly: no stretch of time of its length ever holds more moments than it allows.
Moments are given away in advance and may leave gaps: a message that must wait for a slow limit of
its own chat takes nothing from the others in between, as the bucket of a token counter would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

# A moment that was given away is good for so many seconds after it has come: its taker wakes up a
# little late. Then it must take another one, lest many latecomers send at once.
GRACE: Final = 1.0


class Rate(Struct, frozen=True, kw_only=True):
    """At most `most` messages in any `seconds`, of all that count against `bucket`, a name within
    the account that sends ("all", "chat 5")."""

    bucket: str
    most: int
    seconds: float


def earliest(taken: Sequence[Sequence[float]], rates: Sequence[Rate], at: float) -> float:
    """The first moment from `at` on that no limit forbids. `taken` holds the moments given away
    already, ascending, for each of `rates`; all times are in seconds of one clock."""
    while True:
        moment = at
        for moments, rate in zip(taken, rates, strict=True):
            at = _free(moments, rate, at)
        if at == moment:
            return at


def _free(taken: Sequence[float], rate: Rate, at: float) -> float:
    """Each run of `most` moments shorter than the limit's length forbids another within that length of its ends."""
    for first, last in zip(taken, taken[rate.most - 1 :], strict=False):
        if last - first < rate.seconds and last - rate.seconds < at < first + rate.seconds:
            at = first + rate.seconds
    return at
