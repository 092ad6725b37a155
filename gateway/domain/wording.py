"""Numbers of things in sentences for people."""

from __future__ import annotations


def counted(count: int, what: str) -> str:
    """So many of something whose plural ends in s: "1 message", "1,200 messages"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"
