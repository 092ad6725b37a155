"""Numbers of things, and moments, in sentences for people."""

from __future__ import annotations

from datetime import datetime, tzinfo


def counted(count: int, what: str) -> str:
    """So many of something whose plural ends in s: "1 message", "1,200 messages"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def moment(at: float, zone: tzinfo | None) -> str:
    """A moment (seconds since the epoch) in a time zone, None: this machine's: "22 Nov 2026, 15:30"."""
    local = datetime.fromtimestamp(at, zone)
    return f"{local.day} {local:%b %Y, %H:%M}"
