"""Tables, for chats that have none: in columns if they fit a phone, else line by line. A narrow table becomes a block
of fixed-width text. A wide one would be unreadable there, so each of its rows becomes lines of "Header: value"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

import wcwidth

_BETWEEN: Final = "  "
_COLUMN: Final = re.compile(r"(?<=\S) {2,}(?=\S)")


def columns(rows: Sequence[Sequence[str]], alignments: Sequence[str], *, widest: int) -> str | None:
    """`rows` of equal length, headers first, in columns; None if that is wider than `widest`. `alignments` are the
    parser's: "Left", "Right", "Center" or "None" for each column."""
    if any("\n" in cell for row in rows for cell in row):
        return None
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + len(_BETWEEN) * (len(widths) - 1) > widest:
        return None
    head, *body = (_line(row, widths, alignments) for row in rows)
    if not head:  # a table that was cut goes on without its headers
        return "\n".join(body)
    return "\n".join((head, "─" * max(map(width, (head, *body))), *body))


def without_columns(text: str) -> str:
    """A command's answer without the columns for a terminal, because a phone's font is not fixed-width."""
    return "\n".join(_COLUMN.sub(" — ", line.strip()) for line in text.split("\n"))


def width(text: str) -> int:
    """The columns that `text` takes in a fixed-width font; a Chinese character or an emoji takes two."""
    return wcwidth.width(text, control_codes="ignore")


def _line(cells: Iterable[str], widths: Sequence[int], alignments: Sequence[str]) -> str:
    aligned = [_aligned(cell, room, alignment) for cell, room, alignment in zip(cells, widths, alignments, strict=True)]
    return _BETWEEN.join(aligned).rstrip()


def _aligned(cell: str, room: int, alignment: str) -> str:
    free = room - width(cell)
    left = {"Right": free, "Center": free // 2}.get(alignment, 0)
    return " " * left + cell + " " * (free - left)
