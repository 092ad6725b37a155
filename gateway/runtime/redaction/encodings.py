"""A text as it reads once its encodings are undone, with the way back to the places of the original.

A credential right after an ANSI colour, `%3D` or a JSON escape is not at the beginning of a word any more, and one
with an invisible character inside is no run. So the searches look at a second reading, too.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from gateway.runtime.patterns import late
from gateway.runtime.redaction.places import Span
from gateway.runtime.structs import replace

_ROUNDS: Final = 4  # an encoding inside an encoding inside an encoding, with colours
_INVISIBLE: Final = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
)
# The first sign stands alone in front: a search for one of a few signs is fast. Escapes of terminals are ECMA-48's CSI
# (one with a blank inside sets the cursor's form) and those of two characters. Titles and links stand between two of
# these; they are read, because a title may be a command with its password.
_UNSEEN: Final = late(
    rf"[\x1b{_INVISIBLE}](?:(?<=[{_INVISIBLE}])"
    r"|\[[0-?]{0,40}(?: (?=q))?[@-~]|(?P<edge>[\]\\])|[@-Z^_])"
)
_ENCODED: Final = late(
    r"[%&\\](?:"
    r"(?<=%)(?P<percent>[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*+)"
    r"|(?<=\\)(?:u(?P<code>[0-9A-Fa-f]{4})|x(?P<byte>[0-9A-Fa-f]{2})|(?P<sign>[\"'/\\nrtbf]))"
    r"|(?<=&)(?:(?P<name>quot|amp|lt|gt|apos|nbsp)|#(?P<number>\d{1,6})|#[xX](?P<hex>[0-9A-Fa-f]{1,5}));)"
)
_SIGNS: Final = {"n": "\n", "r": "\r", "t": "\t", "b": " ", "f": " "}
_NAMES: Final = {"quot": '"', "amp": "&", "lt": "<", "gt": ">", "apos": "'", "nbsp": " "}
_ODD: Final = re.compile(rf"[{_INVISIBLE}]")


_Piece = tuple[int, int, str, int]
"""(start, end, what stands there instead, characters of the original for each of its own)."""


class DecodedText(Struct, frozen=True):
    """`text`, and for each piece of it, in order: where it begins here and there, and how wide a character is there."""

    text: str
    at: list[int]
    origin: list[int]
    width: list[int]
    strips: bool = False  # whether only what nobody sees was left out

    def original(self, span: Span) -> Span:
        """Return the span of the original text that a span of this one stands for."""
        start, end = span
        return self._place(start), self._place(end - 1, after=1) if end > start else self._place(start)

    def _place(self, position: int, after: int = 0) -> int:
        piece = bisect_right(self.at, position) - 1
        return self.origin[piece] + (position - self.at[piece] + after) * self.width[piece]


def decoded(text: str) -> list[DecodedText]:
    """`text` with its encodings undone, one reading for each level of them: the last is the one to look at."""
    readings: list[DecodedText] = []
    while len(readings) < _ROUNDS and (reading := _once(readings[-1].text if readings else text)) is not None:
        readings.append(reading)
    return readings


def original(readings: Iterable[DecodedText], span: Span) -> Span:
    """Return the span of the first text for a span found in the last of `readings`."""
    for reading in reversed(list(readings)):
        span = reading.original(span)
    return span


def _once(text: str) -> DecodedText | None:
    if "\x1b" in text or (not text.isascii() and _ODD.search(text) is not None):
        stripped = _built(text, (_unseen(match) for match in _UNSEEN.finditer(text)))
        if len(stripped.text) < len(text):
            return replace(stripped, strips=True)
    if not any(sign in text for sign in "%&\\") or _ENCODED.search(text) is None:
        return None
    found = (piece for match in _ENCODED.finditer(text) for piece in _pieces(match))
    reading = _built(text, _only_their_lines(text, found))
    return reading if len(reading.text) < len(text) else None


def _unseen(match: re.Match[str]) -> _Piece:
    """Leave it out; the edge of a title is the edge of a word."""
    start, end = match.span()
    return start, end, " " if match["edge"] else "", end - start


def _only_their_lines(text: str, found: Iterable[_Piece]) -> Iterator[_Piece]:
    """The pieces, and what leaves out all lines without one: those read as they did before."""
    done = 0
    for piece in found:
        start = piece[0]
        if (first := text.find("\n", done, start)) >= 0 and (last := text.rfind("\n", done, start)) > first:
            yield first, last, "", 1
        yield piece
        done = piece[1]
    if done and (first := text.find("\n", done)) >= 0:
        yield first, len(text), "", 1


def _pieces(match: re.Match[str]) -> Iterable[_Piece]:
    """Yield the pieces that an encoding stands for."""
    start, end = match.span()
    if match["percent"]:
        return _bytes(match["percent"], start)
    if match["sign"]:
        meant = _SIGNS.get(match["sign"], match["sign"])
    elif match["name"]:
        meant = _NAMES[match["name"]]
    elif number := match["code"] or match["byte"] or match["hex"]:
        meant = _character(int(number, 16))
    elif match["number"]:
        meant = _character(int(match["number"]))
    else:
        meant = ""
    return ((start, end, meant, end - start),)


def _character(code: int) -> str:
    """The character of a number; none for a half of a pair and for what no character has."""
    return "" if 0xD800 <= code < 0xE000 or code > 0x10FFFF else chr(code)


def _bytes(escaped: str, start: int) -> Iterable[_Piece]:
    """Each character that a row of percent signs stands for; a byte is a character where they are no UTF-8."""
    held = bytes.fromhex(escaped.replace("%", ""))
    try:
        characters = held.decode()
        sizes = [len(character.encode()) for character in characters]
    except UnicodeDecodeError:
        characters, sizes = held.decode("latin-1"), [1] * len(held)
    for character, size in zip(characters, sizes, strict=True):
        yield start, start + 3 * size, character, 3 * size
        start += 3 * size


def _built(text: str, replacements: Iterable[_Piece]) -> DecodedText:
    pieces: list[str] = []
    at, origin, width = [0], [0], [1]
    done = length = 0
    for start, end, meant, wide in replacements:
        length += start - done
        pieces += (text[done:start], meant)
        if meant:
            at.append(length)
            origin.append(start)
            width.append(wide)
            length += 1
        at.append(length)
        origin.append(end)
        width.append(1)
        done = end
    pieces.append(text[done:])
    return DecodedText("".join(pieces), at, origin, width)
