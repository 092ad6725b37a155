"""Breaking long lines for a screen, as pure functions: between words, never inside a word.

A terminal breaks a line at its last column, even inside a word. These functions break it at white space, and between
the characters of scripts without spaces. The rows after the first are indented as far as the text of the first row
is, so that lists and two-column tables keep their shape. Code, tables, and words longer than the screen are not broken:
a long word may be an address that a person copies.

Widths are in cells. `cells` counts those of one character; a Chinese one takes two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

Fragment = tuple[str, str]  # a style's name, a text
Cells = Callable[[str], int]

VERBATIM: Final = "class:block"  # the style of lines that are never broken
_TAB: Final = 8  # cells from one tab stop to the next
_MOST: Final = 100_000  # characters; a longer line is not broken
LONGEST: Final = 8_000  # characters; a longer line is not broken at each redraw (8,000 take a few milliseconds)

# Han, kana, their punctuation and full-width forms. Korean has spaces between its words.
_UNSPACED: Final = re.compile(
    "[\u2e80-\u30ff\u31c0-\u9fff\uf900-\ufaff\uff00-\uff60\uffe0-\uffe6\U00020000-\U0003ffff]"
)
_NEVER_FIRST: Final = frozenset(
    "、。，．：；！？）］｝」』】》〉〕…—～·’”%,.:;!?)]}ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々"
)
_NEVER_LAST: Final = frozenset("（［｛「『【《〈〔‘“([{")

_MARKER: Final = re.compile(r"\s*(?:(?:[-*+•◦▪☐☑·!>│]|\d{1,3}[.)])\s+)?")
_TWO_COLUMNS: Final = re.compile(r"\s*\S(?:\s?\S)*(?<![.!?:])\s{2,}(?=\S)")  # two spaces, but not after a sentence
_TABLE: Final = re.compile(r"\s*\|")


def wrap(fragments: Iterable[Fragment], *, columns: int, cells: Cells) -> list[Fragment]:
    """`fragments` with additional line ends, so that each line fits `columns`."""
    wrapped: list[Fragment] = []
    for line in _lines(fragments):
        text = "".join(part for _, part in line)
        if any(style.startswith(VERBATIM) for style, _ in line):
            wrapped += line
            continue
        indent, rows = breaks(text, columns=columns, cells=cells)
        for number, (start, end) in enumerate(rows):
            if number:
                wrapped.append(("", "\n" + " " * indent))
            wrapped += _cut(line, start, end)
    return wrapped


def breaks(line: str, *, columns: int, cells: Cells, longest: int = _MOST) -> tuple[int, list[tuple[int, int]]]:
    """The indentation of the rows after the first, and the start and end of each row in `line`.

    The white space at a break belongs to no row. A line is one row if it fits, if it may not be broken, or if it has
    more than `longest` characters.
    """
    short = len(line) * 2 <= columns and "\t" not in line
    if short or len(line) > longest or _TABLE.match(line):
        return 0, [(0, len(line))]
    prefix = _MARKER.match(line)
    first = prefix.end() if prefix is not None else 0  # no break before this: a list mark stays with its text
    indent = _indent(line, first, columns, cells)
    rows: list[tuple[int, int]] = []
    start = used = 0
    cut = None  # where the next row would start
    for index, character in enumerate(line):
        if index > max(first, start) and _may_break(line[index - 1], character):
            cut = index
        width = _TAB - used % _TAB if character == "\t" else cells(character)
        if cut is not None and used + width > columns and not character.isspace():
            rows.append((start, start + len(line[start:cut].rstrip())))
            start, cut, used = cut, None, indent + _width(line[cut:index], cells)
        used += width
    return indent, [*rows, (start, len(line))]


def _may_break(before: str, after: str) -> bool:
    if after.isspace():
        return False
    if before.isspace():
        return True
    unspaced = _UNSPACED.match(before) or _UNSPACED.match(after)
    return bool(unspaced) and after not in _NEVER_FIRST and before not in _NEVER_LAST


def _indent(line: str, marked: int, columns: int, cells: Cells) -> int:
    """Cells before the text of the first row; at most half of the columns, so that there is room for the others."""
    column = _TWO_COLUMNS.match(line)
    for end in (column.end() if column is not None else 0, marked):
        width = _width(line[:end].expandtabs(_TAB), cells)
        if 0 < width <= columns // 2:
            return width
    return 0


def _width(text: str, cells: Cells) -> int:
    return sum(cells(character) for character in text)


def _lines(fragments: Iterable[Fragment]) -> Iterator[list[Fragment]]:
    """The fragments line by line, each with its line end."""
    line: list[Fragment] = []
    for style, text in fragments:
        for part in text.splitlines(keepends=True):
            line.append((style, part))
            if part.endswith("\n"):
                yield line
                line = []
    if line:
        yield line


def _cut(line: Sequence[Fragment], start: int, end: int) -> Iterator[Fragment]:
    """The fragments between two positions of their joined text."""
    position = 0
    for style, text in line:
        part = text[max(0, start - position) : max(0, end - position)]
        if part:
            yield style, part
        position += len(text)
