"""A session of the real program in a pseudo terminal, as a moving picture: what a person types, and what comes."""

from __future__ import annotations

from itertools import groupby, pairwise
from pathlib import Path
from typing import Final

import pyte
from pyte.screens import Char

from tests.docs.svg import Ink, Scene, box, disc, moving, picture, text
from tests.support.console_terminal import chatting
from tests.support.waiting import eventually

COLUMNS: Final = 80
ROWS: Final = 36
SESSION: Final = (  # what is typed, and what is seen then. No tool is called: ids of calls count as tokens, and differ.
    ("My favourite colour is green", "however long it gets."),
    ("What is my favourite colour?", "you told me so."),
    ("/pin Never push to main", "removes it."),
    ("/context", "from now."),
)
SETTINGS: Final = "tools: {shell: {enabled: false}}"  # whose tokens would count only where a sandbox holds

_CELL: Final = 8.4  # pixels of a character's width, at a size of
_SIZE: Final = 14
_LINE: Final = 19
_EDGE: Final = 18
_BAR: Final = 36  # pixels of the window's title
_WAIT, _READ = 0.8, 2.2  # seconds before an answer, and to read it
_BACKGROUND, _TITLE = "#1b1f27", "#2a303c"
_COLOURS: Final = {
    "default": "#d8dee9",
    "cyan": "#7fd1e0",
    "green": "#a5d6a0",
    "red": "#e88b8b",
    "brightblack": "#8a94a6",
}


async def drawn(folder: Path) -> str:
    """Start `legato chat` in a folder of its own, talk to it as `SESSION` says, and draw how the screen fills."""
    (folder / "config.yaml").write_text(SETTINGS, encoding="utf-8")
    async with chatting(folder, rows=ROWS, columns=COLUMNS) as terminal:
        filled: list[int] = []
        for typed, seen in (("", "Ctrl-D leaves"), *SESSION):
            if typed:
                terminal.types(f"{typed}\r")
            await terminal.sees(seen)
            await eventually(lambda: _rows(terminal.written)[-1][0].data == "›")  # the program waits for more
            filled.append(len(_rows(terminal.written)) - 1)
        rows = _rows(terminal.written)
    return _picture(rows, filled)


def _rows(written: bytes) -> list[list[Char]]:
    """Return a screen's rows after all that was written to it, without the empty ones at the end."""
    screen = pyte.Screen(COLUMNS, ROWS)
    pyte.ByteStream(screen).feed(written)
    rows = [[screen.buffer[row][column] for column in range(COLUMNS)] for row in range(ROWS)]
    while len(rows) > 1 and not _text_of(rows[-1]):
        rows.pop()
    return rows


def _picture(rows: list[list[Char]], filled: list[int]) -> str:
    """`filled` says how many rows were there before the first question, and after each answer."""
    width = 2 * _EDGE + COLUMNS * _CELL
    height = _BAR + 2 * _EDGE + len(rows) * _LINE
    window = [
        box(0, 0, width, height, _BACKGROUND, radius=10),
        box(0, 0, width, _BAR, _TITLE, radius=10),
        box(0, _BAR - 10, width, 10, _TITLE),
        *(disc(22 + 20 * place, _BAR / 2, 6, fill) for place, fill in enumerate(("#e0605e", "#e3b44c", "#62b563"))),
        text(width / 2, _BAR / 2 + 5, "legato chat", Ink(fill="#aab2c0"), size=13, at="middle"),
    ]

    def lines(first: int, end: int) -> list[str]:
        there = range(first, end)
        return [part for number in there for part in _line(rows[number], _BAR + _EDGE + number * _LINE + _SIZE)]

    scenes, at = [Scene(parts=lines(0, filled[0]), since=0)], _READ
    for before, after in pairwise(filled):
        asked = next(number for number in range(before, after) if rows[number][0].data == "›") + 1
        scenes.append(Scene(parts=lines(before, asked), since=at))
        scenes.append(Scene(parts=lines(asked, after), since=at + _WAIT))
        at += _WAIT + _READ
    parts = [*window, *moving(scenes, at + _READ)]
    return picture(width, height, "A session of legato chat in a terminal", parts)


def _line(row: list[Char], y: float) -> list[str]:
    parts: list[str] = []
    column = 0
    for (colour, bold), cells in groupby(row, key=lambda cell: (cell.fg, cell.bold)):
        words = "".join(cell.data for cell in cells)
        if words.strip():
            ink = Ink(fill=_COLOURS[colour], bold=bold, mono=True)
            indent, end = len(words) - len(words.lstrip()), len(words.rstrip())
            width = (end - indent) * _CELL
            parts.append(text(_EDGE + (column + indent) * _CELL, y, words.strip(), ink, size=_SIZE, width=width))
        column += len(words)
    return parts


def _text_of(row: list[Char]) -> str:
    return "".join(cell.data for cell in row).strip()
