"""The prints of the interactive console, as pure functions: text in, styled fragments out.

A reply streams line by line: a line goes to the scrollback once, laid out, when it is complete and
nothing that follows can change it, and is never touched again; what is not printed yet is the caller's
to show where it can be redrawn. Only where a long line is broken is decided when it is printed
(`wrapping`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from math import ceil
from typing import Final

from msgspec import Struct

from adapters.console.codec import MARKS, marked
from adapters.console.rendering import LARGEST, Row, blocks, rows
from adapters.console.wrapping import LONGEST, Cells, Fragment, breaks
from gateway.domain.chat import OutboundKind
from gateway.domain.wording import printable

REWRITTEN: Final = "· (I changed the answer above; its new version goes on here)\n"
ANEW: Final = "· …\n"  # between what was said before a tool ran, or by an attempt that broke off, and what is said now
_GROWN: Final = 1.01
_LONG: Final = 3  # seconds of work that are worth a figure
_FENCE: Final = re.compile(r"\s*(```|~~~)")
_INLINE: Final = re.compile(r"(?P<code>`[^`\n]+`)|(?P<strong>\*\*(?=\S)[^*\n]+\*\*)")


class ReplyFlow:
    """One reply on its way to the screen: the rows that are printed, and the next ones."""

    def __init__(self) -> None:
        self.begun = False
        """Whether some of the reply is printed."""
        self.in_code = False
        """Whether the next line belongs to a code block, which is shown as it is."""
        self._raw = False  # whether the rest is shown as it was written
        self._read = ""  # the whole lines of the text that were looked at
        self._block = 0  # where the block begins that may still grow
        self._printed: list[str] = []  # the words of each of its rows that is printed
        self._held = 0  # where the text begins whose rows are not printed yet
        self._seen = self._shown = ""  # the text that was looked at last, and its printable form

    def has_grown(self, text: str) -> bool:
        """Whether the reply, now that it is `text` so far, is worth a look: a long one is each time it has grown by
        a hundredth. A look reads all of it, and a model writes a few letters at a time."""
        before = len(self._seen)
        return before <= LARGEST or not before <= len(text) < _GROWN * before

    def advance(self, text: str, *, columns: int) -> list[Fragment]:
        """Return the pieces to print on a screen of `columns` now that the reply is `text` so far."""
        text = self._printable(text)
        if self._read.startswith(text):
            return []  # nothing new, or a new attempt that has not come as far yet
        end = text.rfind("\n") + 1
        return [] if end == len(self._read) and text.startswith(self._read) else self._take(text[:end], columns)

    def finish(self, text: str, *, columns: int) -> list[Fragment]:
        """Return the pieces still to be printed when the reply is `text` for good; the last one ends the line."""
        text = printable(text).rstrip()
        known = self._read if self._read.rstrip() == text else text + "\n"
        return self._take(known, columns, last=True)

    def unfinished(self, text: str) -> str:
        """The lines of `text` that `advance` does not print yet."""
        text = self._printable(text)
        return text[self._held if text.startswith(self._read) else text.rfind("\n") + 1 :]

    def _printable(self, text: str) -> str:
        if text is not self._seen:
            self._seen, self._shown = text, printable(text)
        return self._shown

    def _take(self, read: str, columns: int, *, last: bool = False) -> list[Fragment]:
        fragments: list[Fragment] = []
        if not read.startswith(self._read):
            if not read:
                return []
            self._held = self._block = min(self._held, _common_lines(self._read, read))
            self._printed = []
            fragments.append(("class:aside", REWRITTEN if self._block else ANEW))
        self._read = read
        for row in self._next_rows(columns, last=last):
            self.begun = True
            fragments += [*row, ("", "\n")]
        return fragments

    def _next_rows(self, columns: int, *, last: bool) -> Iterator[Row]:
        """The next rows: all blocks that have ended, and those of the newest one that more text will not change."""
        rest = self._read[self._block :]
        if self._raw or len(rest) > LARGEST:
            self._raw = True
            if lines := self._read[self._held :].splitlines():
                yield [("", "\n".join(lines))]
            self._held = self._block = len(self._read)
            return
        found = blocks(rest)
        for block, following in pairwise(found):
            body = rest[block.start : following.start]
            yield from self._new(rows(body, columns=columns))
            if body.endswith("\n\n"):
                yield []
            self._printed = []
        newest = rest[found[-1].start :] if found else ""
        self._block = len(self._read) - len(newest)
        self._held = max(self._held, self._block)
        self.in_code = bool(found) and found[-1].kind == "CodeBlock" and not _is_closed(newest)
        if found and (last or not _may_change(found[-1].kind, newest)):
            yield from self._new(rows(newest, columns=columns))
            self._held = len(self._read)

    def _new(self, laid_out: Sequence[Row]) -> Iterator[Row]:
        """The rows of the present block that are not printed yet. Marks may change after those; the words count."""
        words = ["".join(filter(str.isalnum, "".join(text for _, text in row))) for row in laid_out]
        known = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._printed, words, strict=False)))
        self._printed = words
        yield from laid_out[known:]


def _may_change(kind: str, block: str) -> bool:
    """Whether the next line of a block may change the look of those before it: rows of a table, which its widest
    cell lays out; a line that may be a table's head; a fence without its code."""
    line = block[block.rfind("\n", 0, -1) + 1 :]
    return kind == "Table" or "|" in line or (_FENCE.match(line) is not None and not _is_closed(block))


def _is_closed(block: str) -> bool:
    """Whether each fence in a block has its other half."""
    return sum(1 for line in block.split("\n") if _FENCE.match(line)) % 2 == 0


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
    said = printable(text.strip("\n"))
    lines = said.split("\n") if len(said) <= LARGEST else []
    styled = [fragment for line in lines for fragment in (*inline(line), ("", "\n"))] or [("", f"{said}\n")]
    return [("class:aside", where), *styled, ("", "\n")]


class Work(Struct, frozen=True, kw_only=True):
    """The present work of a turn, its start, and when its model is asked again (monotonic seconds; 0.0: never)."""

    doing: str = "thinking"
    since: float | None = None
    again_at: float = 0.0

    def is_plain(self, now: float) -> bool:
        """Whether the reply's own words say enough."""
        return self.doing == "thinking" and self.again_at <= now


def at_work(work: Work, now: float) -> str:
    """The line above the prompt while a turn runs."""
    seconds = 0 if work.since is None else int(now - work.since)
    took = f" {seconds} s" if seconds >= _LONG else ""
    if (pause := ceil(work.again_at - now)) > 0:
        return f"· no answer yet{took and f' after{took}'}; trying again in {pause} s (Ctrl-C stops)\n"
    return f"· {work.doing}…{took} (Ctrl-C stops)\n"


def fold(text: str, *, columns: int, height: int, cells: Cells, code: bool = False) -> list[str]:
    """The last `height` rows of the line `text` on a screen of `columns`; `cells` is a character's width.

    Broken as `wrapping.wrap` will break it (`code`: as the terminal will), so that nothing moves when
    the line is printed.
    """
    line = text.expandtabs(8)
    indent, spans = (0, [(0, len(line))]) if code else breaks(line, columns=columns, cells=cells, longest=LONGEST)
    folded: list[str] = []
    for start, end in reversed(spans):
        row = " " * (indent if start else 0) + line[start:end]
        folded[:0] = _cut(row[-(height + 1) * columns :], columns, cells)
        if len(folded) >= height:
            break
    return folded[-height:]


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
