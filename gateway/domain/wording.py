"""Numbers of things, moments, and strangers' texts, in sentences and on terminals for people."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo
from typing import Final

from gateway.runtime.patterns import late


def counted(count: int, what: str) -> str:
    """So many of something whose plural ends in s: "1 message", "1,200 messages"."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def first_of(things: Sequence[str], most: int) -> str:
    """The first of some things, as a list: "a, b, c and 4 more"."""
    more = f" and {len(things) - most:,} more" if len(things) > most else ""
    return f"{', '.join(things[:most])}{more}"


def lasting(seconds: float, *, short: bool = False) -> str:
    """A time for people: "20 seconds", "10 minutes", "5 h 20 min"; with `short` "20 s", "10 min"."""
    whole = max(0, round(seconds))
    if whole < 120:
        return f"{whole} s" if short else counted(whole, "second")
    minutes = round(whole / 60)
    if minutes < 120:
        return f"{minutes} min" if short else counted(minutes, "minute")
    return f"{minutes // 60} h {minutes % 60} min" if minutes % 60 else f"{minutes // 60} h"


def dollars(cost_usd: float | None) -> str:
    """A cost for people: "$1.50", "$0.0042"; None: no price is known."""
    if cost_usd is None:
        return "at a price that is not known"
    if not cost_usd:
        return "free"
    if cost_usd >= 0.1:
        return f"${cost_usd:,.2f}"
    return f"${cost_usd:.5f}".rstrip("0") if cost_usd >= 0.000_01 else "under $0.00001"


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


# -- terminals -----------------------------------------------------------------------------------------


REPLACEMENT: Final = "\ufffd"
_COLOUR_CODES: Final = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")  # ECMA-48 control sequences
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_PICTURES: Final = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"},  # Unicode's control pictures
    0x7F: "\u2421",
    **dict.fromkeys(range(0x80, 0xA0), REPLACEMENT),
}
_HALVES: Final = re.compile("[\ud800-\udfff]")
# Signs that turn the direction of what follows, which may make a line read as another (UAX #9).
_DIRECTIONS: Final = re.compile("[\u202a-\u202e\u2066-\u2069]")
_HIDDEN: Final = late("[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """`text` as a terminal may show it: the only control characters left are newline and tab.

    Colour codes and changes of direction vanish; any other control character becomes its visible picture, so that a
    text cannot move the cursor, rename the window or write to the clipboard.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii():
        text = _DIRECTIONS.sub("", text)
    if not _CONTROLS.search(text):
        return text
    return _HALVES.sub(REPLACEMENT, _COLOUR_CODES.sub("", text).translate(_PICTURES))


def printable_json(document: str) -> str:
    """A JSON document as a terminal may show it: JSON's own escapes stand for what is not shown."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", document)
