"""Places where a long Markdown text may be cut, and what must be added so that each half stands by itself. Offsets are
bytes of the text in UTF-8, as the parser counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final

from msgspec import Struct

from gateway.delivery.markdown.events import Event, Unreadable, events
from gateway.delivery.markdown.reading import OPTIONS, language


class Rank(IntEnum):
    """Kinds of places for a cut, best first."""

    BLOCKS = 0
    ITEMS = 1
    NESTED = 2  # items or blocks within an item or a quote
    LINES = 3  # of a paragraph, a block of code or a table
    SENTENCES = 4
    WORDS = 5
    STYLED = 6  # anything within bold or slanted text, which ends in one half and begins in the other


class Cut(Struct, frozen=True, kw_only=True):
    """A place to cut. The text before `at` gets `closing`, the text after it `opening`.

    `indent`: the lines after the cut move left by so many columns, as far as they can, because their items are in the
    other half. `midway`: the first of these lines has no indent of its own.
    """

    at: int
    rank: Rank
    closing: str = ""
    opening: str = ""
    indent: int = 0
    midway: bool = False


_LONGEST_MARKS: Final = 32  # of a fence that is repeated
_MOST_COLUMNS: Final = 20  # of a table that goes on as a table
_LONGEST_HEADER: Final = 200  # characters of a table's headers that are repeated
_DEEPEST_QUOTE: Final = 3  # deeper ones go on less deep
_NEAR: Final = 2_000  # bytes before the end in which sentences and words are looked for

_SENTENCE: Final = re.compile(r"""[.!?…]["'”’)\]]*\s+|[。！？；]["”’）」』]*\s*""")
_WORD: Final = re.compile(r"\s+|[，、：]+")
_LOOKS_LIKE_MARKUP: Final = re.compile(r"[-+*>#=|~`:]|\d{1,9}[.)]|\s")
_FENCE: Final = re.compile(rb"(`{3,}|~{3,})[ \t]*([^\n]*)")
_MARKER: Final = re.compile(rb"(?:[-*+]|\d{1,9}[.)])[ \t]{0,4}|\[\^[^\]]*\]:[ \t]*")
_DELIMITERS: Final = {"Left": ":-|", "Right": "-:|", "Center": ":-:|", "None": "-|"}

_CONTAINERS: Final = frozenset(("Item", "FootnoteDefinition"))
_LEAVES: Final = frozenset(("Paragraph", "Heading", "HtmlBlock", "CodeBlock", "Table", "List", "Rule"))
_STYLES: Final = {"Strong": 2, "Emphasis": 1, "Strikethrough": 2}  # how many signs mark each
_WHOLE: Final = frozenset(("Link", "Image", "Table", "Heading", "CodeBlock"))


def cuts(source: str, end: int) -> list[Cut]:
    """All good places in `source` up to byte `end`, in no order; none if it cannot be read."""
    survey = _Survey(source.encode(), end)
    return [cut for event in _events(source) for cut in survey.look(event) if 0 < cut.at <= end]


def rough_cut(source: str, at: int) -> Cut:
    """A cut at byte `at`, wherever that is. Only code stays code."""
    data = source.encode()
    for event in _events(source):
        if event.edge == "start" and event.name == "CodeBlock" and event.start < at < event.end:
            fence = _Fence.of(data, event)
            if fence is not None and at > fence.first_line:
                return fence.cut(at)
    return Cut(at=at, rank=Rank.STYLED, midway=True)


def _events(source: str) -> list[Event]:
    try:
        return events(source, OPTIONS)
    except Unreadable:
        return []


class _Fence(Struct, frozen=True, kw_only=True):
    """The beginning of a code block. `prefix`: the markers of quotes and items before each of its lines."""

    prefix: str
    marks: str
    info: str
    first_line: int

    @classmethod
    def of(cls, data: bytes, event: Event) -> _Fence | None:
        """The fence of a code block; None if it has none, or none that could be repeated."""
        match = _FENCE.match(data, event.start)
        if match is None or len(match[1]) > _LONGEST_MARKS or event.data == "Indented":
            return None
        return cls(
            prefix=_prefix(data, event.start),
            marks=match[1].decode(),
            info=language(match[2].decode()) or "",
            first_line=match.end() + 1,
        )

    def cut(self, at: int) -> Cut:
        """A cut between two lines of the block, or inside one."""
        quoted = self.prefix if ">" in self.prefix else ""
        return Cut(
            at=at,
            rank=Rank.LINES,
            closing=f"\n{self.prefix}{self.marks}",
            opening=f"{quoted}{self.marks}{self.info}\n",
            indent=0 if quoted else len(self.prefix),
        )


class _Survey:
    """Reads the events of a text in order, and finds the places for a cut."""

    def __init__(self, data: bytes, end: int) -> None:
        self._data = data
        self._end = end
        self._open: list[str] = []  # tags that hold what comes
        self._marks: list[str] = []  # of the styles among them
        self._columns: list[int] = []  # where the text of each open item begins
        self._quotes = 0
        self._after_heading = False
        self._seen = 0  # the last line that a block was seen to begin in
        self._alignments: Sequence[str] = ()
        self._header = ""  # the line of the open table's headers
        self._rows = 0

    def look(self, event: Event) -> Iterator[Cut]:
        """The places that an event brings."""
        if event.edge == "end":
            self._leave(event)
            return
        if event.name in _LEAVES or event.name in _CONTAINERS or event.name == "BlockQuote":
            yield from self._before_block(event)
        if event.edge == "start":
            yield from self._enter(event)
        elif event.name in ("SoftBreak", "HardBreak") and not _WHOLE.intersection(self._open):
            yield from self._line(self._data.find(b"\n", event.start) + 1)
        elif event.name == "Html" and self._data[event.start - 1 : event.start] == b"\n":
            yield Cut(at=event.start, rank=Rank.LINES)
        elif event.name == "Text" and event.end > self._end - _NEAR and not _WHOLE.intersection(self._open):
            yield from self._within(event)

    def _enter(self, event: Event) -> Iterator[Cut]:
        self._open.append(event.name)
        if event.name in _CONTAINERS:
            marker = _MARKER.match(self._data, event.start)
            line = self._data.rfind(b"\n", 0, event.start) + 1
            self._columns.append((marker.end() if marker is not None else event.start) - line)
        elif event.name == "BlockQuote":
            self._quotes += 1
        elif event.name in _STYLES:
            marks = self._data[event.start : event.start + _STYLES[event.name]].decode(errors="ignore")
            self._marks.append(marks if len(set(marks)) == 1 else "")
        elif event.name == "Table":
            self._alignments, self._header, self._rows = event.data, "", 0
        elif event.name == "TableHead":
            self._header = self._data[event.start : event.end].decode().rstrip()
        elif event.name == "TableRow":
            self._rows += 1
            if self._rows > 1:
                yield self._row(event)
        elif event.name == "CodeBlock":
            yield from self._lines_of_code(event)

    def _leave(self, event: Event) -> None:
        if event.name in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(event.name)]
        if event.name in _CONTAINERS:
            self._columns.pop()
        elif event.name == "BlockQuote":
            self._quotes -= 1
        elif event.name in _STYLES:
            self._marks.pop()
        elif event.name in _LEAVES:
            self._after_heading = event.name == "Heading"

    def _before_block(self, event: Event) -> Iterator[Cut]:
        """The line at which a block begins; not below a heading, which would be left alone."""
        line = self._data.rfind(b"\n", 0, event.start) + 1
        if line <= self._seen or self._after_heading:
            return
        self._seen = line
        nested = bool(self._columns or self._quotes)
        rank = Rank.NESTED if nested else Rank.ITEMS if event.name == "Item" else Rank.BLOCKS
        yield Cut(at=line, rank=rank, indent=self._indent(line) if self._columns else 0)

    def _line(self, at: int) -> Iterator[Cut]:
        """A line of a paragraph begins at `at`."""
        if _LOOKS_LIKE_MARKUP.match(self._data[at : at + 12].lstrip(b" \t>").decode(errors="ignore")):
            return
        quoted = self._data[at : at + 4].lstrip(b" ").startswith(b">")
        yield self._midway(at, Rank.LINES, quoted=quoted)

    def _within(self, event: Event) -> Iterator[Cut]:
        """Ends of sentences and words in a text."""
        start = max(event.start, self._end - _NEAR)
        while start < event.end and self._data[start] & 0xC0 == 0x80:  # not within a character
            start += 1
        text = self._data[start : event.end].decode()
        for rank, pattern in ((Rank.SENTENCES, _SENTENCE), (Rank.WORDS, _WORD)):
            for match in pattern.finditer(text):
                at = start + len(text[: match.end()].encode())
                if not _LOOKS_LIKE_MARKUP.match(self._data[at : at + 12].decode(errors="ignore")):
                    yield self._midway(at, rank)

    def _midway(self, at: int, rank: Rank, *, quoted: bool = False) -> Cut:
        return Cut(
            at=at,
            rank=Rank.STYLED if self._marks else rank,
            closing="".join(reversed(self._marks)),
            opening=("" if quoted else "> " * min(self._quotes, _DEEPEST_QUOTE)) + "".join(self._marks),
            indent=self._columns[-1] if self._columns else 0,
            midway=True,
        )

    def _lines_of_code(self, event: Event) -> Iterator[Cut]:
        fence = _Fence.of(self._data, event)
        at = self._data.find(b"\n", event.start) + 1 if fence is None else fence.first_line
        last = self._data.rstrip(b"\n").rfind(b"\n", 0, event.end) + 1  # where the closing fence is, as a rule
        while 0 < (at := self._data.find(b"\n", at) + 1) < min(event.end, self._end, last + 1):
            if fence is not None and not self._data[at:last].strip():
                return
            if fence is not None:
                yield fence.cut(at)
            elif event.data == "Indented":
                yield Cut(at=at, rank=Rank.LINES)

    def _row(self, event: Event) -> Cut:
        """Between two rows: the other half gets the headers again, so that it can be read by itself; headers without
        names if they are long."""
        line = self._data.rfind(b"\n", 0, event.start) + 1
        prefix = _prefix(self._data, event.start) if self._quotes else ""
        columns = len(self._alignments)
        opening = ""
        if columns <= _MOST_COLUMNS:
            delimiters = "".join(_DELIMITERS[alignment] for alignment in self._alignments)
            header = self._header if len(self._header) <= _LONGEST_HEADER else f"|{'  |' * columns}"
            opening = f"{prefix}{header}\n{prefix}|{delimiters}\n"
        return Cut(at=line, rank=Rank.LINES, opening=opening, indent=self._indent(line) if self._columns else 0)

    def _indent(self, line: int) -> int:
        start = self._data[line : line + 64]
        return len(start) - len(start.lstrip(b" "))


def _prefix(data: bytes, at: int) -> str:
    """The line of `at`, up to `at`, with spaces in place of the markers of items."""
    line = data.rfind(b"\n", 0, at) + 1
    return re.sub(r"[^>\s]", " ", data[line:at].decode())
