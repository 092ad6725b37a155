"""What is marked in a text, made into entities that Telegram takes.

https://core.telegram.org/bots/api#formatting-options: entities nest or lie apart, they never overlap
in part; code is inside nothing but a quote and holds nothing; links and quotes hold no second of
their kind. Of more than a hundred Telegram ignores the rest, whatever they are, and it refuses a
message whose entities are too long together (about 9,500 bytes; tdlib/telegram-bot-api issue 165).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final, Literal

from gateway.delivery.markdown.page import Kind, Span

MOST_ENTITIES: Final = 100
_MOST_BYTES: Final = 8_000  # of all entities together, with room to spare
_LONG_QUOTE: Final = 1_000  # characters; a longer one is shown folded
_BYTES: Final = 16  # of one entity beside its link or language

_CODE: Final[frozenset[Kind]] = frozenset(("code", "pre"))
_BLOCKS: Final[frozenset[Kind]] = frozenset(("blockquote", "pre"))
_STYLES: Final[frozenset[Kind]] = frozenset(("bold", "italic", "underline", "strikethrough"))

# Of two that mark the same text, which is the outer one.
_OUTER_FIRST: Final[tuple[Kind, ...]] = ("blockquote", "text_link", "spoiler", *sorted(_STYLES), "code", "pre")
_DEPTH: Final = {kind: depth for depth, kind in enumerate(_OUTER_FIRST)}

# What each may not be in. Code inside a style is no conflict: the style is cut around it. A spoiler
# stays whole, because what it hides must stay hidden.
_NOT_IN: Final[dict[Kind, frozenset[Kind]]] = {
    **dict.fromkeys(_STYLES, _CODE),
    **dict.fromkeys(_CODE, _CODE | {"text_link", "spoiler"}),
    "blockquote": _CODE | {"blockquote", "text_link"},
    "spoiler": _CODE,
    "text_link": _CODE,
}

# What is given up first when there are too many: a text loses its slant before it loses its links.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """One MessageEntity of the Bot API: `offset` and `length` are UTF-16 units of the message's text."""

    type: Kind | Literal["expandable_blockquote"]
    offset: int
    length: int
    url: str | None = None
    language: str | None = None

    def as_dict(self) -> dict[str, str | int]:
        """The fields that it has, as the Bot API names them."""
        fields: dict[str, str | int] = {"type": self.type, "offset": self.offset, "length": self.length}
        if self.url is not None:
            fields["url"] = self.url
        if self.language is not None:
            fields["language"] = self.language
        return fields


def tidied(text: str, spans: Iterable[Span]) -> list[Span]:
    """`spans` without what Telegram does not allow, in order, outer ones first; still any number of them."""
    nested = list(_nested(spans))
    bounds = [bound for span in _around_code(nested) if (bound := _trimmed(text, span)) is not None]
    return sorted(bounds, key=_order)


def affordable(spans: Sequence[Span]) -> list[Span]:
    """As many tidied `spans` as one message takes; the least important ones go first."""
    kept: list[Span] = []
    size = 0
    for span in sorted(spans, key=lambda span: _WORTH[span.kind]):
        size += _BYTES + len((span.url or span.language or "").encode())
        if len(kept) == MOST_ENTITIES or size > _MOST_BYTES:
            break
        kept.append(span)
    return kept


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
        for span in sorted(spans, key=_order)
    )


def _is_long(span: Span) -> bool:
    return span.kind == "blockquote" and span.end - span.start > _LONG_QUOTE


def _order(span: Span) -> tuple[int, int, int]:
    return span.start, -span.end, _DEPTH[span.kind]


def _nested(spans: Iterable[Span]) -> Iterator[Span]:
    """Spans of which each is wholly inside another or apart from it, and inside none that it may not be in."""
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
    """Spans in order; those that only change the look of letters leave out the code in them."""
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
    """The span without white space at its ends; a block keeps what its first line is indented by."""
    start, end = span.start, span.end
    while start < end and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace() and (span.kind not in _BLOCKS or text[start] == "\n"):
        start += 1
    if start >= end:
        return None
    return span if (start, end) == (span.start, span.end) else replace(span, start=start, end=end)
