"""Numbers of things, and moments, in sentences for people."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo


def counted(count: int, what: str) -> str:
    """So many of something whose plural ends in s: "1 message", "1,200 messages"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def lasting(seconds: float, *, short: bool = False) -> str:
    """A time for people: "20 seconds", "10 minutes", "5 h 20 min"; with `short` "20 s", "10 min"."""
    whole = max(0, round(seconds))
    if whole < 120:
        return f"{whole} s" if short else counted(whole, "second")
    minutes = round(whole / 60)
    if minutes < 120:
        return f"{minutes} min" if short else counted(minutes, "minute")
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def moment(at: float, zone: tzinfo | None) -> str:
    """A moment (seconds since the epoch) in a time zone, None: this machine's: "22 Nov 2026, 15:30"."""
    local = datetime.fromtimestamp(at, zone)
    return f"{local.day} {local:%b %Y, %H:%M}"


def utc(at: float) -> str:
    """A moment (seconds since the epoch) for programs: ISO 8601 in UTC, in whole seconds."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def reason_of(error: OSError) -> str:
    """The system's reason for an error, as it can follow a colon."""
    return (error.strerror or "unknown reason").lower()
