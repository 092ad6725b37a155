"""The rules for when a quiet session ends."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field

from gateway.domain.settings import Count, Flag, Section


def _time_of_day(value: Any) -> Any:
    if isinstance(value, str) and not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", value):
        raise ValueError(f'must be a time of day from "00:00" to "23:59", not {value!r}')
    return value


def _zone(value: str) -> str:
    try:
        ZoneInfo(value)
    except (OSError, ValueError, KeyError):  # KeyError covers ZoneInfoNotFoundError
        raise ValueError(f"must be the name of a time zone such as Europe/Berlin, not {value!r}") from None
    return value


TimeOfDay = Annotated[str, Field(strict=True), BeforeValidator(_time_of_day)]


def next_daily(at: str, zone: ZoneInfo | None, after: float) -> float:
    """The first moment after another (seconds since the epoch) when it is so late in the zone; None: this machine's."""
    local = datetime.fromtimestamp(after, zone)
    due = datetime.combine(local.date(), time.fromisoformat(at), zone)
    if due.timestamp() <= after:
        due = datetime.combine(local.date() + timedelta(days=1), time.fromisoformat(at), zone)
    return due.timestamp()


class ExpiryPolicy(Section):
    """When a quiet session ends."""

    mode: Literal["idle", "daily", "both", "none"] = Field("idle", description="after a pause, or once a day")
    idle_minutes: Count = Field(10_080, description="the length of the pause; 10080 is 7 days")
    daily_at: TimeOfDay = Field("04:00", description="the time of day, in quotes")
    notify: Flag = Field(True, description="tell the chat once how to get the conversation back")
    temporary_hours: Count = Field(24, description="a temporary chat is deleted so long after its last message")
    timezone: Annotated[str, Field(strict=True), AfterValidator(_zone)] | None = Field(
        None, description="such as Europe/Berlin; null: this machine's"
    )

    @property
    def zone(self) -> ZoneInfo | None:
        """The time zone of the people who talk here; None: this machine's."""
        return ZoneInfo(self.timezone) if self.timezone else None

    def deadline(self, last_active_at: float, temporary: bool = False) -> float | None:
        """Seconds since the epoch at which a session last active then is due; None: never."""
        if temporary:
            return last_active_at + 3_600 * self.temporary_hours
        idle = last_active_at + 60 * self.idle_minutes
        match self.mode:
            case "none":
                return None
            case "idle":
                return idle
            case "daily":
                return next_daily(self.daily_at, self.zone, last_active_at)
            case "both":
                return min(idle, next_daily(self.daily_at, self.zone, last_active_at))
