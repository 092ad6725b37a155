"""Markdown in a terminal: the layout that every platform has, as rows of styled fragments.

`blocks` says where a growing text may be taken apart, so that what is printed need not be looked at again; `rows` lays
out one such block. The layout keeps the line ends of its source, so the rows of a block that grows stay as they are,
and only new ones follow. Tables are the exception: their columns are as wide as their widest cell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from adapters.console.wrapping import VERBATIM, Fragment
from gateway.delivery.markdown.events import events
from gateway.delivery.markdown.layout import Medium, laid_out
from gateway.delivery.markdown.page import Span
from gateway.delivery.markdown.reading import OPTIONS

LARGEST: Final = 16 * 1024  # characters; a larger block is shown as it was written
_COLOURED: Final = 60  # lines of code before the newest that are read for its colours, each time that it grows
_MARGIN: Final = "│ "  # before the lines of a quote

Row = list[Fragment]
"""The fragments of one line, without its line end."""

_STYLES: Final = {
    "bold": "class:strong",
    "italic": "italic",
    "underline": "underline",
    "strikethrough": "strike",
    "code": "class:code",
    "blockquote": "class:quote",
}


class Block(Struct, frozen=True, kw_only=True):
    """A block of Markdown that is not inside another: `kind` is the parser's word, `start` its first character."""

    kind: str
    start: int


def blocks(text: str) -> list[Block]:
    """The outermost blocks of `text`, in order. `text` holds no halves of characters."""
    data = text.encode()
    found: list[Block] = []
    depth = position = characters = 0
    for event in events(text, OPTIONS):
        if event.edge == "end":
            depth -= 1
        elif depth == 0:
            characters += len(data[position : event.start].decode())
            position = event.start
            found.append(Block(kind=event.name, start=characters))
        depth += event.edge == "start"
    return found


def rows(markdown: str, *, columns: int) -> list[Row]:
    """One block as rows; never raises. What cannot be laid out is shown as it was written."""
    if len(markdown) > LARGEST:
        return _verbatim(markdown)
    try:
        text, spans = laid_out(markdown, Medium(cleaned=str, linked=_unlinked, table_columns=columns))
    except (LookupError, RecursionError, TypeError, ValueError):
        return _verbatim(markdown)
    return list(_rows(text.rstrip("\n"), spans)) if text.strip() else []


def _unlinked(target: str) -> None:
    """Links, written out after their words, because not every terminal can be clicked."""


def _verbatim(markdown: str) -> list[Row]:
    return [[("", line)] for line in markdown.rstrip("\n").split("\n")]


def _rows(text: str, spans: Sequence[Span]) -> Iterator[Row]:
    start = 0
    coloured = {span.start: span for span in spans if span.kind == "pre"}
    coming = sorted((span for span in spans if span.kind in _STYLES), key=lambda span: span.start, reverse=True)
    here: list[Span] = []  # those that reach into the line at hand
    while start <= len(text):
        code = coloured.get(start)
        if code is not None and code.end > start:
            yield from _code(text[start : min(code.end, len(text))], code.language)
            start = code.end + 1
            continue
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        here = [span for span in here if span.end > start]
        while coming and coming[-1].start < end:
            here.append(coming.pop())
        row = list(_styled(text, start, end, here))
        yield [("class:quote", _MARGIN), *row] if any(span.kind == "blockquote" for span in here) else row
        start = end + 1


def _styled(text: str, start: int, end: int, here: Sequence[Span]) -> Iterator[Fragment]:
    """One line, cut wherever a mark begins or ends; `here` are the marks by their starts."""
    edges = sorted({start, end, *(min(max(at, start), end) for span in here for at in (span.start, span.end))})
    coming, marked = list(reversed(here)), list[Span]()
    for one, other in pairwise(edges):
        marked = [span for span in marked if span.end > one]
        while coming and coming[-1].start <= one:
            marked.append(coming.pop())
        yield " ".join(_STYLES[span.kind] for span in marked), text[one:other]


def _code(code: str, language: str | None) -> Iterator[Row]:
    lines = code.split("\n")
    plain = max(0, len(lines) - _COLOURED)
    for line in lines[:plain]:
        yield [(VERBATIM, line)]
    yield from _lines_in_colours("\n".join(lines[plain:]), language)


def _lines_in_colours(code: str, language: str | None) -> Iterator[Row]:
    row: Row = []
    for kind, text in _tokens(code, language):
        first, *others = text.split("\n")
        row.append((_colour(kind), first))
        for line in others:
            yield row
            row = [(_colour(kind), line)]
    yield row


def _tokens(code: str, language: str | None) -> Iterable[tuple[Sequence[str], str]]:
    """Pieces of `code`, each with its kind, from the general to the particular."""
    if language:
        with suppress(ValueError):  # a language that nobody knows
            lexers: Any = import_module("pygments.lexers")  # by name: most conversations have no code
            tokens: Iterable[tuple[Sequence[str], str]] = lexers.get_lexer_by_name(
                language, stripnl=False, ensurenl=False
            ).get_tokens(code)
            return tokens
    return [((), code)]


def _colour(kind: Sequence[str]) -> str:
    return f"{VERBATIM} class:pygments.{'.'.join(kind).lower()}" if kind else VERBATIM
