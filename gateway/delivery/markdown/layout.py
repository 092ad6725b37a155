"""Markdown laid out as a person reads it in a chat: the text, and what of it is marked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from msgspec import Struct

from gateway.delivery.markdown.characters import sound
from gateway.delivery.markdown.events import Event
from gateway.delivery.markdown.formulas import readable, script
from gateway.delivery.markdown.page import Kind, Span, StyledText
from gateway.delivery.markdown.reading import language, read
from gateway.delivery.markdown.tables import columns

_RULE: Final = "———"
_BULLETS: Final = "•◦▪"
_TASKS: Final = {False: "☐ ", True: "☑ "}
_PICTURE: Final = "🖼 "
_NOTHING: Final = "–"  # an empty cell beside its header
_STEP: Final = "   "  # what an item's further lines and its own lists are indented by
_QUOTED: Final = "> "  # before a quote within a quote
_TAB: Final = 4

_HEADINGS: Final[dict[str, tuple[Kind, ...]]] = {
    "H1": ("bold", "underline"),
    "H2": ("bold",),
    "H3": ("bold",),
    "H4": ("bold",),
    "H5": ("bold", "italic"),
    "H6": ("bold", "italic"),
}
_STYLES: Final[dict[str, Kind]] = {
    "Strong": "bold",
    "Emphasis": "italic",
    "Underline": "underline",
    "Strikethrough": "strikethrough",
    "Spoiler": "spoiler",
    "Monospaced": "code",
}

_LINKS: Final = frozenset(("Link", "Image"))


class Medium(Struct, frozen=True, kw_only=True):
    """How platforms differ in ways that matter to a layout."""

    cleaned: Callable[[str], str]  # a text as it will be shown
    linked: Callable[[str], str | None]  # a link's target as it is taken; None if it would be refused
    table_columns: int  # of a block of code, as wide as a screen shows without breaking its lines


def laid_out(markdown: str, medium: Medium) -> tuple[str, list[Span]]:
    """The text of `markdown` and its marks, not yet tidied. Raises the errors of `reading.read`."""
    source, events = read(sound(markdown))
    layout = _Layout(source, medium)
    layout.add(events)
    return layout.page.text, layout.page.spans


class _Layout:
    """Writes events onto its `page`. `source`: the text that their offsets refer to."""

    def __init__(self, source: bytes, medium: Medium) -> None:
        self.page = StyledText(medium.cleaned)
        self._source = source
        self._medium = medium
        self._open: list[tuple[str, int, str]] = []  # tags that are open: name, where they began, link
        self._numbers: list[int | None] = []  # of the next item in each open list; None in one of bullets
        self._quotes: list[tuple[int, list[str]]] = []  # where each open quote began, and the margins around it
        self._code: list[str] | None = None  # what the open block of code holds
        self._info = ""  # behind its fence
        self._table: list[Event] | None = None  # what the open table holds
        self._alignments: Sequence[str] = ()  # of its columns

    def add(self, events: Iterable[Event]) -> None:
        """Write these events."""
        for event in events:
            if self._table is not None and event.name != "Table":
                self._table.append(event)
            elif event.edge == "start":
                _STARTS.get(event.name, _Layout._start_style)(self, event)
            elif event.edge == "end":
                _ENDS.get(event.name, _Layout._end_style)(self, event)
            else:
                _CONTENTS[event.name](self, event)

    # Blocks

    def _start_block(self, event: Event) -> None:
        self.page.begin(self._line_ends(event))

    def _end_block(self, event: Event) -> None:
        self.page.end()

    def _line_ends(self, event: Event) -> int:
        """The line ends between the last block and this one: as in the source, with or without an empty line."""
        line = self._source.rfind(b"\n", 0, event.start) + 1
        above = self._source[self._source.rfind(b"\n", 0, max(line - 1, 0)) + 1 : line]
        return 1 if above.strip(b" \t>\n") else 2

    def _start_heading(self, event: Event) -> None:
        self._start_block(event)
        self._start_style(event)

    def _end_heading(self, event: Event) -> None:
        start, _ = self._closed(event)
        for kind in _HEADINGS[event.data]:
            self.page.mark(kind, start)
        self.page.end()

    def _rule(self, event: Event) -> None:
        self._start_block(event)
        self.page.write(_RULE)
        self.page.end()

    def _start_code(self, event: Event) -> None:
        self.page.begin(self._line_ends(event), own_line=True)
        self._info = event.data["Fenced"] if event.data != "Indented" else ""
        self._code = []

    def _end_code(self, event: Event) -> None:
        code, known = "".join(self._code or ()), language(self._info)
        self._code = None
        if known is None or not code.strip():  # a word behind a fence without code may be an answer
            code, known = f"{self._info}\n{code}", None
        code = code.removesuffix("\n").expandtabs(_TAB)
        if code.strip():
            self.page.mark("pre", self.page.write_block(code), language=known or None)
        self.page.end()

    def _start_quote(self, event: Event) -> None:
        if self._quotes:  # a quote within a quote is shown by its margin
            self.page.begin(self._line_ends(event))
            self._add_marker(_QUOTED)
            self._quotes.append((self.page.length, self.page.margins))
            self.page.margins.append(_QUOTED)
        else:
            self.page.begin(self._line_ends(event), own_line=True)
            self._quotes.append((self.page.open(), self.page.margins))
            self.page.margins = []
        if event.data is not None:
            self.page.mark("bold", self.page.write(event.data))
            self.page.end()

    def _add_marker(self, marker: str) -> None:
        """Begin an item or a quote on a line of its own, unless another one begins there."""
        if not self.page.marker:
            self.page.settle()
        self.page.marker += marker

    def _end_quote(self, event: Event) -> None:
        self.page.settle_marker()
        start, margins = self._quotes.pop()
        if self._quotes:
            self.page.margins.pop()
        else:
            self.page.margins = margins
            self.page.mark("blockquote", start)
        self.page.end()

    def _start_list(self, event: Event) -> None:
        self._numbers.append(event.data)

    def _end_list(self, event: Event) -> None:
        self._numbers.pop()
        self.page.end()

    def _start_item(self, event: Event) -> None:
        self.page.begin(self._line_ends(event))
        number = self._numbers[-1]
        if number is None:
            self._add_marker(_BULLETS[min(len(self._numbers), len(_BULLETS)) - 1] + " ")
        else:
            self._add_marker(f"{number}. ")
            self._numbers[-1] = number + 1
        self.page.margins.append(_STEP)

    def _end_item(self, event: Event) -> None:
        self.page.settle_marker()
        self.page.margins.pop()
        self.page.end()

    def _task(self, event: Event) -> None:
        marker = self.page.marker
        bullet = marker[-2:-1] in _BULLETS
        self.page.marker = (marker[:-2] if bullet else marker) + _TASKS[event.data]

    def _start_footnote(self, event: Event) -> None:
        self._start_block(event)
        self._add_marker(f"[{event.data}] ")

    def _end_footnote(self, event: Event) -> None:
        self.page.settle_marker()
        self.page.end()

    # Lines of text

    def _text(self, event: Event) -> None:
        if self._code is not None:
            self._code.append(event.data)
        elif event.data:
            self.page.write(event.data)

    def _line_end(self, event: Event) -> None:
        self.page.line_end()

    def _monospaced(self, event: Event) -> None:
        self.page.mark("code", self.page.write(event.data))

    def _formula(self, event: Event) -> None:
        self.page.mark("code", self.page.write(readable(event.data)))

    def _displayed_formula(self, event: Event) -> None:
        self.page.begin_line()
        self.page.mark("pre", self.page.write_block(readable(event.data)))
        self.page.end()

    def _footnote(self, event: Event) -> None:
        self.page.write(f"[{event.data}]")

    def _start_style(self, event: Event) -> None:
        target = event.data["dest_url"] if event.name in _LINKS else ""
        self._open.append((event.name, self.page.settle(), target))

    def _end_style(self, event: Event) -> None:
        start, _ = self._closed(event)
        if event.name in _STYLES:
            self.page.mark(_STYLES[event.name], start)

    def _closed(self, event: Event) -> tuple[int, str]:
        """The place and the link of the innermost open tag with the event's name."""
        for index in range(len(self._open) - 1, -1, -1):
            if self._open[index][0] == event.name:
                _, start, target = self._open.pop(index)
                return start, target
        return self.page.length, ""

    def _end_script(self, event: Event) -> None:
        start, _ = self._closed(event)
        if text := self.page.since(start):
            self.page.replace(start, script("^" if event.name == "Superscript" else "_", text))

    def _start_image(self, event: Event) -> None:
        self._start_style(event)
        self.page.write(_PICTURE)

    def _end_link(self, event: Event) -> None:
        """A link, or its target in brackets if the platform cannot link there, for example to a path or an e-mail
        address."""
        start, target = self._closed(event)
        address = self._medium.linked(target)
        shown = self.page.since(start).removeprefix(_PICTURE)
        said = target.removeprefix("mailto:")
        if not shown and (address is None or event.name == "Link"):
            self.page.write(said)
            shown = said
        elif address is None and said not in ("", shown) and not said.startswith("#"):
            self.page.write(f" ({said})")
        if address is not None and target != shown:
            self.page.mark("text_link", start, url=address)

    # Tables

    def _start_table(self, event: Event) -> None:
        self.page.begin(self._line_ends(event), own_line=True)
        self._table = []
        self._alignments = event.data

    def _end_table(self, event: Event) -> None:
        rows = self._rows(self._table or ())
        self._table = None
        text = None
        if not any(span.kind == "text_link" for row in rows for cell in row for span in cell.spans):
            texts = [[cell.text for cell in row] for row in rows]
            text = columns(texts, self._alignments, widest=self._medium.table_columns)
        if text is not None:
            self.page.mark("pre", self.page.write_block(text))
        elif len(rows) == 1:
            self._write_row([StyledText(self._medium.cleaned) for _ in rows[0]], rows[0])
        else:
            for number, row in enumerate(rows[1:]):
                if number:  # the first begins where the table does
                    self.page.begin(2)
                self._write_row(rows[0], row)
        self.page.end()

    def _rows(self, events: Iterable[Event]) -> list[list[StyledText]]:
        """The cells of a table, each laid out by itself; the first row has the headers."""
        rows: list[list[StyledText]] = []
        cell = _Layout(self._source, self._medium)
        for event in events:
            if event.name == "TableCell" and event.edge == "start":
                cell = _Layout(self._source, self._medium)
            elif event.name == "TableCell":
                rows[-1].append(cell.page)
                last = event.end
            elif event.name in ("TableHead", "TableRow") and event.edge == "start":
                rows.append([])
                last = event.start
            elif event.name in ("TableHead", "TableRow"):
                surplus = self._source[last : event.end].strip(b"| \t\n")
                if surplus:  # a row with more cells than there are headers: the parser leaves them out
                    rows[-1][-1].write(f" {surplus.decode()}")
            else:
                cell.add((event,))
        return rows

    def _write_row(self, headers: Sequence[StyledText], cells: Sequence[StyledText]) -> None:
        for header, cell in zip(headers, cells, strict=True):
            if header.length:
                start = self.page.settle()
                self.page.paste(header)
                self.page.write(": ")
                self.page.mark("bold", start)
            if cell.length:
                self.page.paste(cell)
            elif header.length:
                self.page.write(_NOTHING)
            self.page.end()


_STARTS: Final[dict[str, Callable[[_Layout, Event], None]]] = {
    "Paragraph": _Layout._start_block,
    "Heading": _Layout._start_heading,
    "HtmlBlock": _Layout._start_block,
    "CodeBlock": _Layout._start_code,
    "BlockQuote": _Layout._start_quote,
    "List": _Layout._start_list,
    "Item": _Layout._start_item,
    "FootnoteDefinition": _Layout._start_footnote,
    "Table": _Layout._start_table,
    "Image": _Layout._start_image,
}
_ENDS: Final[dict[str, Callable[[_Layout, Event], None]]] = {
    "Paragraph": _Layout._end_block,
    "Heading": _Layout._end_heading,
    "HtmlBlock": _Layout._end_block,
    "CodeBlock": _Layout._end_code,
    "BlockQuote": _Layout._end_quote,
    "List": _Layout._end_list,
    "Item": _Layout._end_item,
    "FootnoteDefinition": _Layout._end_footnote,
    "Table": _Layout._end_table,
    "Link": _Layout._end_link,
    "Image": _Layout._end_link,
    "Subscript": _Layout._end_script,
    "Superscript": _Layout._end_script,
}
_CONTENTS: Final[dict[str, Callable[[_Layout, Event], None]]] = {
    "Text": _Layout._text,
    "Code": _Layout._monospaced,
    "InlineMath": _Layout._formula,
    "DisplayMath": _Layout._displayed_formula,
    "SoftBreak": _Layout._line_end,
    "HardBreak": _Layout._line_end,
    "Rule": _Layout._rule,
    "TaskListMarker": _Layout._task,
    "FootnoteReference": _Layout._footnote,
}
