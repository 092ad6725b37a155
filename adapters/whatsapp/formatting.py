"""Markdown made into WhatsApp's signs, no longer than one message may be. Pure.

https://faq.whatsapp.com/539178204879377: signs mark a stretch of one line, between whole words, and none can be
written as itself. So a line with such a sign in its words is not marked by that sign, and a thin space keeps a pair in
its words from marking anything.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from gateway.delivery.markdown.characters import length
from gateway.delivery.markdown.fitting import Fitting, Marked, as_written
from gateway.delivery.markdown.layout import Medium
from gateway.delivery.markdown.page import Kind, Span
from gateway.delivery.markdown.reading import PLAIN
from gateway.delivery.markdown.splitting import Splitter
from gateway.domain.adapter import REPEATED

LONGEST: Final = (
    4_096  # https://developers.facebook.com/documentation/business-messaging/whatsapp/messages/text-messages
)
LONGEST_CAPTION: Final = 1_024
_SCREEN: Final = 34  # columns of a telephone that shows code without breaking its lines
_SIGNS: Final[dict[Kind, str]] = {"bold": "*", "italic": "_", "strikethrough": "~", "code": "`"}
_BLOCK: Final = "```"
_THIN: Final = "\u200a"
_OPENS: Final = re.compile(r"(?<![^\W_])([*_~`])(?=\S)")
_CLOSES: Final = re.compile(r"(?<=\S)([*_~`])(?![^\W_])")


class _Insert(NamedTuple):
    """Something that is put in at a place: ends first, then what begins there, the outermost nearest to the edge."""

    place: int
    rank: int
    depth: int
    text: str


def shown(markdown: str) -> str:
    """One part of Markdown, in the form for WhatsApp; never raises, never empty."""
    fitted = None if PLAIN.fullmatch(markdown) else _FITTING.fitted(markdown)
    return plain(markdown) if fitted is None else fitted[0]


def plain(text: str) -> str:
    """The same of a text that is no Markdown."""
    text = as_written(text)
    calm = _with(text, [_Insert(at, 0, 0, _THIN) for at in _pairs(text)])
    return calm if length(calm, "utf16") <= LONGEST else text


def _signed(text: str, spans: Sequence[Span]) -> Marked:
    """The text with signs around what is marked, which are all that marks it."""
    lines = list(_lines(text, 0, len(text)))
    starts, inserts = [start for start, _ in lines], list[_Insert]()
    marks: dict[int, list[Span]] = {start: [] for start in starts}  # by line, without those of blocks of code
    for each in sorted(spans, key=lambda span: span.kind in _SIGNS):
        inside = lines[bisect_right(starts, each.start) - 1 : bisect_left(starts, each.end)]
        if each.kind == "pre" and _BLOCK not in text[each.start : each.end]:
            inserts += _around(each.start, each.end, _BLOCK)
            for start, _ in inside:
                marks.pop(start, None)
        elif each.kind == "blockquote":
            inserts += [_Insert(start, 1, 0, "> ") for start, _ in inside]
        elif each.kind in _SIGNS:
            for start, end in inside:
                if start in marks and (mark := _within(text, each, start, end)):
                    marks[start].append(mark)
    for start, end in lines:
        inserts += _in_line(text, start, end, marks[start]) if start in marks else ()
    return _with(text, inserts).strip(), ()


def _with(text: str, inserts: Sequence[_Insert]) -> str:
    made, at = list[str](), 0
    for put in sorted(inserts):
        made += (text[at : put.place], put.text)
        at = put.place
    return "".join((*made, text[at:]))


def _pairs(text: str) -> Iterator[int]:
    """The places after characters that would mark something."""
    for start, end in _lines(text, 0, len(text)):
        last = {found[1]: found.start() for found in _CLOSES.finditer(text, start, end)}
        for found in _OPENS.finditer(text, start, end):
            if last.get(found[1], 0) > found.end():
                yield found.end()


def _in_line(text: str, start: int, end: int, marks: Sequence[Span]) -> Iterator[_Insert]:
    line = text[start:end]  # without code, in which signs mark nothing
    for each in marks:
        if each.kind == "code" and "`" not in text[each.start : each.end]:
            line = line[: each.start - start] + "c" * (each.end - each.start) + line[each.end - start :]
    yield from (_Insert(start + at, 1, 0, _THIN) for at in _pairs(line))
    around: list[Span] = []
    for each in sorted(marks, key=lambda mark: (mark.start, -mark.end, mark.kind != "code")):
        around = [outer for outer in around if outer.end > each.start]
        kinds = {outer.kind for outer in around}
        crosses = any(outer.end < each.end for outer in around)
        if _SIGNS[each.kind] not in line and not crosses and not kinds & {each.kind, "code"}:
            around.append(each)
            yield from _around(each.start, each.end, _SIGNS[each.kind], len(around))


def _within(text: str, span: Span, start: int, end: int) -> Span | None:
    """The part of a mark that lies in a line, if WhatsApp shows it: between words, and without white space inside."""
    first, last = max(span.start, start), min(span.end, end)
    stretch = text[first:last]
    first, last = first + len(stretch) - len(stretch.lstrip()), last - len(stretch) + len(stretch.rstrip())
    touches = text[max(start, first - 1) : first].isalnum() or text[last : min(end, last + 1)].isalnum()
    return None if first >= last or touches else Span(kind=span.kind, start=first, end=last)


def _around(start: int, end: int, sign: str, depth: int = 0) -> tuple[_Insert, _Insert]:
    return _Insert(start, 2, depth, sign), _Insert(end, 0, -depth, sign)


def _lines(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start <= end:
        found = text.find("\n", start, end)
        stop = end if found < 0 else found
        yield start, stop
        start = stop + 1


def fits_caption(text: str) -> bool:
    """Whether a file's caption holds a text."""
    return max(length(text, "utf16"), length(shown(text), "utf16")) <= LONGEST_CAPTION


def _unlinked(target: str) -> None:
    """No link: WhatsApp finds them itself."""


_FITTING: Final = Fitting(
    longest=LONGEST,
    medium=Medium(cleaned=str, linked=_unlinked, table_columns=_SCREEN),
    finished=_signed,
)
split: Final = Splitter(limit=LONGEST - len(REPEATED), unit="utf16", load=_FITTING.load).split
