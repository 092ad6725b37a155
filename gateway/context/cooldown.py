"""How long the summariser is left alone after it failed.

malformed answers and broken streams 30 s · transient failures 60 s · time-outs 60, 300, 900 s as
they repeat · no provider configured 600 s · key, quota or payment refused 600 s. Wall time is
used because a cooldown survives restarts; a clock that jumped back cannot prolong one beyond its
own length. `force` bypasses them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from gateway.runtime.errors import ProviderRateLimited, ProviderRejected, ProviderUnavailable, QuotaExceeded

Failure = Literal["malformed", "transient", "timeout", "unconfigured", "refused"]

_SECONDS: Final[Mapping[Failure, tuple[float, ...]]] = {
    "malformed": (30.0,),
    "transient": (60.0,),
    "timeout": (60.0, 300.0, 900.0),
    "unconfigured": (600.0,),
    "refused": (600.0,),
}
_REFUSALS: Final = (401, 402, 403)


def classify(error: BaseException) -> Failure:
    """What kind of failure an error of the summariser is."""
    if isinstance(error, TimeoutError):
        return "timeout"
    if isinstance(error, QuotaExceeded) or (isinstance(error, ProviderRejected) and error.status in _REFUSALS):
        return "refused"
    if isinstance(error, ProviderUnavailable):
        if error.timed_out:
            return "timeout"
        return "malformed" if error.malformed else "transient"
    return "transient"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooldown:
    """The state of the ladder. `since` and `until` are seconds since the epoch."""

    kind: Failure | None = None
    since: float = 0.0
    until: float = 0.0
    timeouts: int = 0  # in a row, for the ladder

    def active(self, now: float) -> bool:
        """Whether the summariser is to be left alone at `now`."""
        return self.kind is not None and self.since <= now < self.until

    def after(self, kind: Failure, now: float, error: BaseException | None = None) -> Cooldown:
        """The cooldown that a failure at `now` starts."""
        timeouts = self.timeouts + 1 if kind == "timeout" else 0
        ladder = _SECONDS[kind]
        seconds = ladder[min(max(timeouts - 1, 0), len(ladder) - 1)]
        if isinstance(error, ProviderRateLimited) and error.retry_after is not None:
            seconds = max(seconds, error.retry_after)
        return Cooldown(kind=kind, since=now, until=now + seconds, timeouts=timeouts)

    def dump(self) -> dict[str, Any]:
        """JSON-able form."""
        return {"kind": self.kind, "since": self.since, "until": self.until, "timeouts": self.timeouts}

    @classmethod
    def load(cls, state: object) -> Cooldown:
        """The inverse of `dump`; anything else gives one that holds nothing back."""
        if not isinstance(state, Mapping):
            return cls()
        kind, since, until, timeouts = (state.get(name) for name in ("kind", "since", "until", "timeouts"))
        numbers = all(isinstance(value, int | float) for value in (since, until))
        if kind not in get_args(Failure) or not numbers or not isinstance(timeouts, int):
            return cls()
        return cls(kind=kind, since=float(since), until=float(until), timeouts=max(0, timeouts))  # type: ignore[arg-type]
