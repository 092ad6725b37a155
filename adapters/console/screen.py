"""The prints of the interactive console, as pure functions: text in, styled fragments out.

A reply streams line by line: a line goes to the scrollback once, when it is complete, and is never
touched again; the unfinished one is the caller's to show where it can be redrawn. The text stays
as the model wrote it, Markdown marks included, so that what is copied is what was said; only where
a long line is broken is decided when it is printed (`wrapping`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil
from typing import Final

from adapters.console.codec import MARKS, marked
from adapters.console.wrapping import LONGEST, VERBATIM, Cells, Fragment, breaks
from gateway.domain.chat import OutboundKind
from gateway.domain.terminal import printable

REWRITTEN: Final = "· (the answer changed; it goes on from here as it is now)\n"
ANEW: Final = "· …\n"  # between what was said before a tool ran, or by an attempt that broke off, and what is said now
_LONG: Final = 3  # seconds of work that are worth a figure
_HEADING: Final = re.compile(r" {0,3}#{1,6}\s")
_FENCE: Final = re.compile(r"\s*(```|~~~)")
_INLINE: Final = re.compile(r"(?P<code>`[^`\n]+`)|(?P<strong>\*\*(?=\S)[^*\n]+\*\*)")


class ReplyFlow:
    """One reply on its way to the screen: the lines that are printed, and the next ones."""

    def __init__(self) -> None:
        self._printed = ""  # the part of the text that is in the scrollback: whole lines
        self._fenced = False  # whether the next line is inside a code block

    @property
    def begun(self) -> bool:
        """Say whether some of the reply is printed."""
        return bool(self._printed)

    @property
    def in_code(self) -> bool:
        """Say whether the next line belongs to a code block, which is shown as it is."""
        return self._fenced

    def advance(self, text: str) -> list[Fragment]:
        """Return the pieces to print now that the reply is `text` so far: the lines newly complete."""
        if self._printed.startswith(text):
            return []  # nothing new, or a new attempt that has not come as far yet
        return self._print(text, text.rfind("\n") + 1)

    def finish(self, text: str) -> list[Fragment]:
        """Return the pieces still to be printed when the reply is `text` for good; the last one ends the line."""
        text = text.rstrip()
        if self._printed.rstrip() == text and self._printed:
            return []
        return self._print(text + "\n", len(text) + 1)

    def unfinished(self, text: str) -> str:
        """The line of `text` that `advance` does not print yet."""
        return printable(text[text.rfind("\n") + 1 :])

    def _print(self, text: str, end: int) -> list[Fragment]:
        fragments: list[Fragment] = []
        start = len(self._printed)
        if not text.startswith(self._printed):
            if end == 0:
                return []
            start = _common_lines(self._printed, text)
            fragments.append(("class:aside", REWRITTEN if start else ANEW))
            self._fenced = sum(1 for line in text[:start].splitlines() if _FENCE.match(line)) % 2 == 1
        for line in printable(text[start:end]).splitlines(keepends=True):
            fragments += self._styled(line)
        self._printed = text[:end]
        return fragments

    def _styled(self, line: str) -> list[Fragment]:
        if _FENCE.match(line):
            self._fenced = not self._fenced
            return [(VERBATIM, line)]
        if self._fenced:
            return [(VERBATIM, line)]
        if _HEADING.match(line):
            return [("class:heading", line)]
        return inline(line)


def _common_lines(one: str, other: str) -> int:
    """Return the length of the whole lines that both texts begin with."""
    length = 0
    while (end := one.find("\n", length) + 1) and other.startswith(one[length:end], length):
        length = end
    return length


def inline(line: str) -> list[Fragment]:
    """A line with its `code` and **strong** parts styled."""
    fragments: list[Fragment] = []
    end = 0
    for match in _INLINE.finditer(line):
        fragments += [("", line[end : match.start()]), (f"class:{match.lastgroup}", match[0])]
        end = match.end()
    fragments.append(("", line[end:]))
    return [fragment for fragment in fragments if fragment[1]]


def heading(name: str, *, again: bool, place: str | None) -> list[Fragment]:
    """The line above a reply: the speaker, whether they go on, and the place if it is not this chat."""
    fragments = [("class:name", name)]
    if again:
        fragments.append(("class:aside", " goes on"))
    if place is not None:
        fragments.append(("class:aside", f" in {printable(place)}"))
    return [*fragments, ("", "\n")]


def whole(kind: OutboundKind, text: str, *, place: str | None = None) -> list[Fragment]:
    """A command's answer, or a notice, an error or a question; these are one block, marked and indented."""
    where = f"[{printable(place)}] " if place is not None else ""
    if kind in MARKS:
        block = marked(kind, where + text.strip())
        return [("class:aside", block)] if kind == "notice" else [(f"class:{kind}", block), ("", "\n")]
    flow = ReplyFlow()
    return [("class:aside", where), *flow.finish(text), ("", "\n")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The present work of a turn, its start, and the moment when its model is asked again (monotonic seconds; 0.0:
    none)."""

    doing: str = "thinking"
    since: float | None = None
    again_at: float = 0.0

    def is_plain(self, now: float) -> bool:
        """Say whether the reply's own words tell enough."""
        return self.doing == "thinking" and self.again_at <= now


def at_work(work: Work, now: float) -> str:
    """The line above the prompt while a turn runs."""
    seconds = 0 if work.since is None else int(now - work.since)
    took = f" {seconds} s" if seconds >= _LONG else ""
    if (pause := ceil(work.again_at - now)) > 0:
        return f"· no answer yet{took and f' after{took}'}; trying again in {pause} s (Ctrl-C stops)\n"
    return f"· {work.doing}…{took} (Ctrl-C stops)\n"


def fold(text: str, *, columns: int, rows: int, cells: Cells, code: bool = False) -> list[str]:
    """The last `rows` rows of the line `text` on a screen of `columns`; `cells` is a character's width.

    Broken as `wrapping.wrap` will break it (`code`: as the terminal will), so that nothing moves when
    the line is printed.
    """
    line = text.expandtabs(8)
    indent, spans = (0, [(0, len(line))]) if code else breaks(line, columns=columns, cells=cells, longest=LONGEST)
    folded: list[str] = []
    for start, end in reversed(spans):
        row = " " * (indent if start else 0) + line[start:end]
        folded[:0] = _cut(row[-(rows + 1) * columns :], columns, cells)
        if len(folded) >= rows:
            break
    return folded[-rows:]


def _cut(row: str, columns: int, cells: Cells) -> list[str]:
    """A row cut between characters wherever the terminal's last column is."""
    parts: list[str] = []
    part, used = "", 0
    for character in row:
        width = cells(character)
        if used + width > columns:
            parts.append(part)
            part, used = "", 0
        part += character
        used += width
    return [*parts, part]
