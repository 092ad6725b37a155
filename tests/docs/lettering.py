"""The width of text in a picture, and its line breaks: the file must not depend on anybody's fonts."""

from __future__ import annotations

from typing import Final

from tests.docs.svg import Ink

_CELL: Final = 0.6  # of the size: the width of every character of a monospaced font
_WIDER: Final = 1.17  # the widest common fonts (Verdana, DejaVu Sans) beside Helvetica
_OTHERS: Final = 600  # of a character that the table lacks
# Widths of Helvetica's characters, in thousandths of the size: Adobe's font metrics.
_WIDTHS: Final = {
    character: width
    for width, characters in {
        191: "'",
        222: "ijl",
        278: " !,./:;I[\\]ft",
        333: "()-`r“”",
        350: "•",
        355: '"',
        389: "*",
        469: "^",
        500: "Jcksvxyz",
        556: "#$0123456789?L_abdeghnopqu–",
        584: "+<=>~",
        611: "FTZ",
        667: "&ABEKPSVXY",
        722: "CDHNRUw",
        778: "GOQ",
        833: "Mm",
        889: "%",
        944: "W",
        1000: "…—",
        1015: "@",
    }.items()
    for character in characters
}


def width(words: str, ink: Ink, size: float) -> float:
    """Pixels that a text takes."""
    if ink.mono:
        return _CELL * size * len(words)
    return sum(_WIDTHS.get(character, _OTHERS) for character in words) * size / 1000


def room(words: str, ink: Ink, size: float) -> float:
    """Pixels that a text may take where a viewer has no such font and does not keep to the width that is stated."""
    return width(words, ink, size) * (1 if ink.mono else _WIDER)


def wrapped(words: str, ink: Ink, size: float, column: float) -> list[str]:
    """The lines of a text in a column of so many pixels."""
    lines: list[str] = []
    for word in words.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and room(longer, ink, size) <= column:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
