"""Marked spans of a text, as Telegram's message entities.

The rules of https://core.telegram.org/bots/api#formatting-options: two entities are nested or apart, and never overlap
in part. Code stands in nothing but a quote, and holds no other entity. No link holds a link, no quote a quote.
Telegram ignores all entities after the hundredth. It refuses a message with more than about 9,500 bytes of entities
(tdlib/telegram-bot-api issue 165).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Final, Literal

from msgspec import Struct

from gateway.delivery.markdown.page import Kind, Span
from gateway.runtime.structs import replace

MOST_ENTITIES: Final = 100
_MOST_BYTES: Final = 8_000  # of all entities together, with room to spare
_LONG_QUOTE: Final = 1_000  # characters; a longer one is shown folded
_BYTES: Final = 16  # of one entity beside its link or language

_CODE: Final[frozenset[Kind]] = frozenset(("code", "pre"))
_BLOCKS: Final[frozenset[Kind]] = frozenset(("blockquote", "pre"))
_STYLES: Final[frozenset[Kind]] = frozenset(("bold", "italic", "underline", "strikethrough"))

# Of two entities around the same text the one named first is the outer one.
_OUTER_FIRST: Final[tuple[Kind, ...]] = ("blockquote", "text_link", "spoiler", *sorted(_STYLES), "code", "pre")
_DEPTH: Final = {kind: depth for depth, kind in enumerate(_OUTER_FIRST)}

# For each kind: the kinds that it may not stand in. Code in a style is allowed here: the style is cut around it. A
# spoiler is never cut, because its words must stay hidden.
_NOT_IN: Final[dict[Kind, frozenset[Kind]]] = {
    **dict.fromkeys(_STYLES, _CODE),
    **dict.fromkeys(_CODE, _CODE | {"text_link", "spoiler"}),
    "blockquote": _CODE | {"blockquote", "text_link"},
    "spoiler": _CODE,
    "text_link": _CODE,
}

# The most important kinds first. Of too many entities the least important are given up.
_KEPT_FIRST: Final[tuple[Kind, ...]] = (
    "spoiler",
    "pre",
    "text_link",
    "blockquote",
    "code",
    "bold",
    "strikethrough",
    "underline",
    "italic",
)
_WORTH: Final = {kind: worth for worth, kind in enumerate(_KEPT_FIRST)}


class Entity(Struct, frozen=True, kw_only=True):
    """One MessageEntity of the Bot API: `offset` and `length` are UTF-16 units of the message's text."""

    type: Kind | Literal["expandable_blockquote"]
    offset: int
    length: int
    url: str | None = None
    language: str | None = None


def tidied(text: str, spans: Iterable[Span]) -> list[Span]:
    """`spans` as Telegram allows them, in order, outer ones first. There may still be too many."""
    nested = list(_nested(spans))
    bounds = [bound for span in _around_code(nested) if (bound := _trimmed(text, span)) is not None]
    return sorted(bounds, key=_order)


def affordable(spans: Sequence[Span]) -> list[Span]:
    """The most important of tidied `spans`, in their order, as many as one message takes."""
    kept: list[Span] = []
    size = 0
    for span in sorted(spans, key=lambda span: _WORTH[span.kind]):
        size += _BYTES + len((span.url or span.language or "").encode())
        if len(kept) == MOST_ENTITIES or size > _MOST_BYTES:
            break
        kept.append(span)
    return sorted(kept, key=_order)


def entities(text: str, spans: Iterable[Span]) -> tuple[Entity, ...]:
    """Tidied `spans` of `text` in UTF-16 units."""
    if text.isascii() or max(text) <= "\uffff":
        offsets: Sequence[int] = range(len(text) + 1)
    else:
        offsets = [0, *accumulate(2 if character > "\uffff" else 1 for character in text)]
    return tuple(
        Entity(
            type="expandable_blockquote" if _is_long(span) else span.kind,
            offset=offsets[span.start],
            length=offsets[span.end] - offsets[span.start],
            url=span.url,
            language=span.language,
        )
        for span in spans
    )


def _is_long(span: Span) -> bool:
    return span.kind == "blockquote" and span.end - span.start > _LONG_QUOTE


def _order(span: Span) -> tuple[int, int, int]:
    return span.start, -span.end, _DEPTH[span.kind]


def _nested(spans: Iterable[Span]) -> Iterator[Span]:
    """`spans`, cut so that any two are nested or apart, without those in places where they are not allowed."""
    around: list[Span] = []
    for span in sorted(spans, key=_order):
        while around and around[-1].end <= span.start:
            around.pop()
        kinds = {outer.kind for outer in around}
        if span.kind in kinds or kinds & _NOT_IN[span.kind]:
            continue
        fitted = replace(span, end=min(span.end, around[-1].end)) if around else span
        around.append(fitted)
        yield fitted


def _around_code(spans: Sequence[Span]) -> Iterator[Span]:
    """Spans in order. Bold and other styles are cut around the code in them."""
    code = [span for span in spans if span.kind in _CODE]
    starts = [span.start for span in code]
    for span in spans:
        if span.kind not in _STYLES:
            yield span
            continue
        start = span.start
        for inner in code[bisect_left(starts, span.start) : bisect_left(starts, span.end)]:
            yield replace(span, start=start, end=inner.start)
            start = inner.end
        yield replace(span, start=start)


def _trimmed(text: str, span: Span) -> Span | None:
    """The span without white space at its ends. A block keeps the indentation of its first line."""
    start, end = span.start, span.end
    while start < end and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace() and (span.kind not in _BLOCKS or text[start] == "\n"):
        start += 1
    if start >= end:
        return None
    return span if (start, end) == (span.start, span.end) else replace(span, start=start, end=end)
