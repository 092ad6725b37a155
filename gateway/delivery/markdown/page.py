"""A text while it is written. Line ends, markers and margins are added when more text follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

from msgspec import Struct

Kind = Literal["blockquote", "text_link", "spoiler", "bold", "italic", "underline", "strikethrough", "code", "pre"]

_DEEPEST: Final = 8  # margins; what is nested deeper is not moved further to the right


class Span(Struct, frozen=True, kw_only=True):
    """A marked stretch of the text, from `start` to before `end`, in characters."""

    kind: Kind
    start: int
    end: int
    url: str | None = None
    language: str | None = None


class StyledText:
    """The text so far, with its marked `spans`; `length` counts characters. `cleaned` gives a text as its platform
    shows it."""

    def __init__(self, cleaned: Callable[[str], str]) -> None:
        self._cleaned = cleaned
        self.spans: list[Span] = []
        self.length = 0
        self.margins: list[str] = []  # what every further line begins with, one for each list or quote that is open
        self.marker = ""  # of an item that has no text yet
        self._top = 0  # where the innermost quote began: its first block needs no line end
        self._due = 0  # line ends before whatever comes next
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        """Everything written so far."""
        return "".join(self._parts)

    def begin(self, line_ends: int, *, own_line: bool = False) -> None:
        """Begin a block, `line_ends` below the last one, or beside a marker unless it needs its `own_line`."""
        if self.marker and own_line:
            self.settle()
            self._due = 1
        elif self.length != self._top and not self.marker:
            self._due = line_ends

    def begin_line(self) -> None:
        """Let the next text begin a line: this one, if it is still empty."""
        self.settle_marker()
        if self._parts and not self._parts[-1].rstrip(" ").endswith("\n"):
            self._due = 1

    def open(self) -> int:
        """Begin a quote; return its place."""
        self._top = self.settle(margin=False)
        return self._top

    def end(self) -> None:
        """End a block: the next text is on another line."""
        self._due = max(self._due, 1 if self.length else 0)

    def settle(self, *, margin: bool = True) -> int:
        """Write the line ends that are due, and return the place of the next character."""
        if self._due:
            self._append("\n" * self._due + (self._margin() if margin else ""))
            self._due = 0
        self.settle_marker()
        return self.length

    def settle_marker(self) -> None:
        """Write the marker of an item, even of an empty one."""
        marker, self.marker = self.marker, ""
        if marker:
            self._append(marker)

    def write(self, text: str) -> int:
        """Write `text` with margins before its other lines, and return its place."""
        clean = self._cleaned(text.lstrip(" ") if self._due else text)
        start = self.settle()
        self._append(clean.replace("\n", "\n" + self._margin()) if "\n" in clean else clean)
        return start

    def write_block(self, text: str) -> int:
        """Write `text` as it is, without margins, and return its place."""
        start = self.settle(margin=False)
        self._append(self._cleaned(text))
        return start

    def line_end(self) -> None:
        """End a line within a block, unless it has just ended."""
        if not self._due:
            self.write("\n")

    def paste(self, other: StyledText) -> None:
        """Write the text of another page, with its marks."""
        start = self.write_block(other.text)
        for span in other.spans:
            self.mark(span.kind, start + span.start, end=start + span.end, url=span.url, language=span.language)

    def since(self, start: int) -> str:
        """The text from `start` on."""
        found: list[str] = []
        missing = self.length - start
        for part in reversed(self._parts):
            if missing <= 0:
                break
            found.append(part[-missing:])
            missing -= len(part)
        return "".join(reversed(found))

    def replace(self, start: int, text: str) -> None:
        """Write `text` in place of everything from `start` on, and drop the marks there."""
        self._parts = [self.text[:start], text]
        self.length = start + len(text)
        self.spans = [span for span in self.spans if span.end <= start]

    def mark(
        self, kind: Kind, start: int, *, end: int | None = None, url: str | None = None, language: str | None = None
    ) -> None:
        """Mark the text from `start` on, or up to `end`."""
        last = self.length if end is None else end
        if start < last:
            self.spans.append(Span(kind=kind, start=start, end=last, url=url, language=language))

    def _margin(self) -> str:
        return "".join(self.margins[:_DEEPEST])

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self.length += len(text)
