"""Single characters: how many there are, whether one sees them, and where to cut between them."""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Literal

from wcwidth import grapheme_boundary_before

Unit = Literal["codepoints", "utf16"]
"""The unit in which a platform counts texts."""

_HALVES: Final = re.compile("[\ud800-\udfff]")

# Characters of other categories than spaces and controls that nevertheless show nothing.
_BLANK: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\ufffc\U000e0100-\U000e01ef]"
)


def length(text: str, unit: Unit) -> int:
    """The number of units in `text`."""
    if unit == "codepoints" or text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def reach(text: str, limit: int, unit: Unit) -> int:
    """The number of characters of `text` that fit into `limit` units."""
    end = min(len(text), limit)
    while (excess := length(text[:end], unit) - limit) > 0:
        end -= (excess + 1) // 2
    return end


def sound(text: str) -> str:
    """`text` with one kind of line end, and without halves of characters, which could not be sent."""
    whole = text if text.isascii() else _HALVES.sub("\ufffd", text)
    return whole.replace("\r\n", "\n").replace("\r", "\n") if "\r" in whole else whole


def is_visible(text: str) -> bool:
    """Whether a reader sees anything in `text`. Platforms refuse messages without visible characters."""
    return any(unicodedata.category(character)[0] not in "ZC" for character in _BLANK.sub("", text))


def last_boundary(text: str, end: int) -> int:
    """The last place for a cut at or before `end` that splits neither a visible character, which may have several code
    points, nor an escaped one from its backslash; `end` if that would leave little."""
    at = grapheme_boundary_before(text, end + 1)
    while at and text[at - 1] == "\\" and text[at : at + 1].isascii():
        at = grapheme_boundary_before(text, at)
    return at if at > end // 2 else end


def split_text(text: str, limit: int | None, unit: Unit = "codepoints") -> list[str]:
    """Parts of at most `limit` units whose concatenation is `text`; at least one part.

    Cuts after the last line end, else the last space, of the second half of a part, else anywhere
    between two characters.
    """
    if limit is None:
        return [text]
    parts: list[str] = []
    start = 0
    while start < len(text):
        end = start + max(1, reach(text[start : start + limit], limit, unit))
        if end < len(text):
            end = _nice_cut(text, start, end)
        parts.append(text[start:end])
        start = end
    return parts or [text]


def _nice_cut(text: str, start: int, end: int) -> int:
    middle = start + (end - start) // 2
    for mark in ("\n", " "):
        found = text.rfind(mark, middle, end)
        if found >= 0:
            return found + 1
    return end
