"""A chat on paper: bubbles with their text, files and buttons, as a telephone shows them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from tests.docs import lettering
from tests.docs.svg import Ink, box, disc, flow, picture, text
from tests.emulators.telegram import Message
from tests.emulators.telegram.units import Ruler

_SCREEN: Final = 460  # pixels of width
_SIZE: Final = 15
_LINE: Final = 20
_EDGE: Final = 12  # pixels between a bubble and the screen
_PAD: Final = 11  # pixels between a bubble and its text
_WIDEST: Final = 360  # pixels of a line
_WIDE_FILE, _HIGH_FILE = 190, 44
_STAMP: Final = 11  # the size of the time
_GAP: Final = 8
_BAR: Final = 52
_BACKDROP, _MINE, _THEIRS, _BUTTON = "#cfe0d4", "#e2fdd0", "#ffffff", "#8fae99"
_PLAIN: Final = Ink(fill="#10161d")
_FAINT: Final = Ink(fill="#8796a1")
_LINK: Final = Ink(fill="#2a7bb8")
_CODE: Final = Ink(fill="#35567a", mono=True)
_BLOCK: Final = Ink(fill="#2f4a68", mono=True)  # a line of code by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Text of one look."""

    words: str
    ink: Ink

    @property
    def size(self) -> float:
        return _SIZE - 1 if self.ink.mono else _SIZE

    @property
    def width(self) -> float:
        return lettering.width(self.words, self.ink, self.size)

    @property
    def room(self) -> float:
        return lettering.room(self.words, self.ink, self.size)


_Line = list[_Run]


def draw(messages: Sequence[Message], *, me: int) -> str:
    """The messages from top to bottom; those of the person `me` on the right."""
    parts: list[str] = []
    y = float(_BAR + _GAP)
    for message in messages:
        mine = message.sender is not None and message.sender.id == me
        bubble, y = _bubble(message, y, mine=mine)
        parts += bubble
        y += _GAP
    bar = [
        box(0, 0, _SCREEN, _BAR, "#4b7fa6"),
        disc(34, _BAR / 2, 17, "#7fb0d3"),
        text(34, _BAR / 2 + 6, "L", Ink(fill="#ffffff", bold=True), size=17, at="middle"),
        text(62, _BAR / 2 - 2, "Legato", Ink(fill="#ffffff", bold=True), size=16),
        text(62, _BAR / 2 + 15, "bot", Ink(fill="#d7e6f1"), size=13),
    ]
    return picture(
        _SCREEN, y + 4, "A chat with the bot on Telegram", [box(0, 0, _SCREEN, y + 4, _BACKDROP), *bar, *parts]
    )


def _bubble(message: Message, y: float, *, mine: bool) -> tuple[list[str], float]:
    """One message, and where it ends."""
    poll, voice = message.content.get("poll"), message.content.get("voice")
    words = "\n○ ".join([poll["question"], *(each["text"] for each in poll["options"])]) if poll else message.text
    lines = list(_lines(_runs(words, message.entities)))
    file = message.content.get("document") or voice
    said = ("edited " if message.edited else "") + time.strftime("%H:%M", time.gmtime(message.date))
    stamp = lettering.room(said, _FAINT, _STAMP)
    end = _wide(lines[-1]) + _GAP + stamp if lines else 0.0
    beside = bool(lines) and end <= _WIDEST and not _is_block(lines[-1])  # the time stands behind the last line
    wide = 2 * _PAD + max([*map(_wide, lines), _WIDE_FILE if file else 0.0, end if beside else 0.0])
    high = 2 * 8 + (_HIGH_FILE if file else 0) + _LINE * len(lines) + (0 if beside else 12)
    x = _SCREEN - _EDGE - wide if mine else float(_EDGE)
    parts = [box(x, y, wide, high, _MINE if mine else _THEIRS, radius=12)]
    top = y + 8
    if file:
        about = (
            ("▶", "Voice message", f"0:{file['duration']:02}")
            if voice
            else ("↓", file["file_name"], f"{file['file_size']} B")
        )
        parts += _file(*about, x + _PAD, top)
        top += _HIGH_FILE
    for line in lines:
        if _is_block(line):
            parts += [box(x + 6, top, wide - 12, _LINE, "#edf2f7"), box(x + 6, top, 3, _LINE, "#5a8fbf")]
        parts += [_drawn(line, x + _PAD, top + 15)] if line else []
        top += _LINE
    parts.append(text(x + wide - _PAD, y + high - 8, said, _FAINT, size=_STAMP, at="end"))
    below = y + high
    for row in (message.reply_markup or {}).get("inline_keyboard", ()):
        parts += _buttons([button["text"] for button in row], x, below + 4, max(wide, 220))
        below += 40
    return parts, below


def _file(sign: str, name: str, below: str, x: float, y: float) -> list[str]:
    return [
        disc(x + 18, y + 19, 18, "#5fa8d8"),
        text(x + 18, y + 26, sign, Ink(fill="#ffffff", bold=True), size=20, at="middle"),
        text(x + 46, y + 16, name, replace(_PLAIN, bold=True), size=_SIZE),
        text(x + 46, y + 33, below, _FAINT, size=13),
    ]


def _buttons(labels: Sequence[str], x: float, y: float, room: float) -> list[str]:
    each, size = (room - 4 * (len(labels) - 1)) / len(labels), 14 if len(labels) < 3 else 12
    parts: list[str] = []
    for place, label in enumerate(labels):
        left = x + place * (each + 4)
        parts.append(box(left, y, each, 34, _BUTTON, radius=8))
        parts.append(text(left + each / 2, y + 22, label, Ink(fill="#ffffff", bold=True), size=size, at="middle"))
    return parts


def _drawn(line: _Line, x: float, y: float) -> str:
    return flow(x, y, [(run.words, run.ink, run.size) for run in line], sum(run.width for run in line))


def _wide(line: _Line) -> float:
    return sum(run.room for run in line)


def _is_block(line: _Line) -> bool:
    return any(run.ink == _BLOCK for run in line)


# -- text ----------------------------------------------------------------------------------------------------

_INKS: Final = {"code": _CODE, "pre": _BLOCK, "bot_command": _LINK, "url": _LINK, "text_link": _LINK, "mention": _LINK}


def _runs(words: str, entities: Sequence[dict[str, Any]]) -> list[_Run]:
    """A text cut where its look changes."""
    ruler = Ruler(words)
    spans = [
        (ruler.index(entity["offset"]) or 0, ruler.index(entity["offset"] + entity["length"]) or 0, entity["type"])
        for entity in entities
    ]
    edges = sorted({0, len(words), *(edge for start, end, _ in spans for edge in (start, end))})
    return [_Run(words=words[start:end], ink=_ink(spans, start, end)) for start, end in pairwise(edges)]


def _ink(spans: Sequence[tuple[int, int, str]], start: int, end: int) -> Ink:
    ink = _PLAIN
    for first, last, kind in spans:
        if first <= start and end <= last:
            ink = replace(_INKS.get(kind, ink), bold=ink.bold or kind == "bold", italic=ink.italic or kind == "italic")
    return ink


def _lines(runs: Sequence[_Run]) -> Iterator[_Line]:
    """Broken at line ends, and between words where a line is full."""
    line: _Line = []
    for run in runs:
        for number, part in enumerate(run.words.split("\n")):
            if number:
                yield line
                line = []
            for word in _words(part):
                piece = _Run(words=word, ink=run.ink)
                if line and _wide(line) + replace(piece, words=word.rstrip()).room > _WIDEST:
                    yield line
                    line = []
                line = _joined(line, piece)
    if line:
        yield line


def _words(part: str) -> list[str]:
    """In pieces that end with their space."""
    pieces = part.split(" ")
    return [f"{piece} " for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def _joined(line: _Line, piece: _Run) -> _Line:
    if line and line[-1].ink == piece.ink:
        return [*line[:-1], replace(piece, words=line[-1].words + piece.words)]
    return [*line, piece]
