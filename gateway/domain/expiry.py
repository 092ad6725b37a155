"""When a quiet session ends by itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo
from typing import Literal

ExpiryMode = Literal["idle", "daily", "both", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpiryPolicy:
    """`idle`: after `idle_minutes` without a turn; `daily`: at the first `daily_at` (wall time in
    `zone`, None: the machine's) after the last turn; `both`: whichever comes first."""

    mode: ExpiryMode = "idle"
    idle_minutes: int = 10_080
    daily_at: time = time(4, 0)
    zone: tzinfo | None = None
    notify: bool = True

    def deadline(self, last_active_at: float) -> float | None:
        """Seconds since the epoch at which a session last active then is due; None: never."""
        idle = last_active_at + 60 * self.idle_minutes
        match self.mode:
            case "none":
                return None
            case "idle":
                return idle
            case "daily":
                return self._next_daily(last_active_at)
            case "both":
                return min(idle, self._next_daily(last_active_at))

    def _next_daily(self, after: float) -> float:
        local = datetime.fromtimestamp(after, self.zone)
        due = datetime.combine(local.date(), self.daily_at, self.zone)
        if due.timestamp() <= after:
            due = datetime.combine(local.date() + timedelta(days=1), self.daily_at, self.zone)
        return due.timestamp()
