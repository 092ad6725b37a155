"""Formatted text: what Telegram makes of a text and its entities before it shows them.

Source: the behaviour of the Bot API server and of TDLib, both public. An entity is a dict with `type`, `offset` and
`length` in UTF-16 units, and what its type needs. Out of range is refused, everything else is put in order: control
characters become spaces, ends are trimmed, empty entities dropped, styles taken out of code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from tests.emulators.telegram.parameters import whole_number
from tests.emulators.telegram.refusals import bad
from tests.emulators.telegram.units import Ruler, length

MOST_ENTITIES = 100  # more than these are dropped without a word
LARGEST_TEXT = 1 << 15  # bytes; more is refused before it is parsed
STYLES = frozenset({"bold", "italic", "underline", "strikethrough", "spoiler"})
QUOTES = frozenset({"blockquote", "expandable_blockquote"})
CODE = frozenset({"code", "pre"})
OWN = STYLES | QUOTES | CODE | {"text_link", "text_mention", "custom_emoji", "date_time"}
FOUND = frozenset(["mention", "hashtag", "cashtag", "bot_command", "url", "email", "phone_number", "bank_card_number"])
_ARGUMENTS = {"text_link": "url", "text_mention": "user", "custom_emoji": "custom_emoji_id", "date_time": "unix_time"}

# Line and paragraph separators, and marks that draw a line through what is above or below them.
_REMOVED = re.compile("[\r\u2028-\u202e\u0333\u033f\u030a]")
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f]")
_INVISIBLE = re.compile("[\\s\u180e\u200b-\u200f\u2060\u2800\ufeff\ufffc]*")

_PATTERNS = (
    ("bot_command", re.compile(r"(?<![\w/<>@])/[A-Za-z0-9_]{1,64}(?:@[A-Za-z][A-Za-z0-9_]{3,31})?(?![\w/<>])")),
    ("email", re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+(?!\w)")),
    ("url", re.compile(r"(?i)(?<!\w)(?:https?://[^\s<>\"]+[\w/=&#]|(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|me)(?!\w))")),
    ("mention", re.compile(r"(?<!\w)@[A-Za-z][A-Za-z0-9_]{2,31}(?!\w)")),
    ("hashtag", re.compile(r"(?<![\w&#])#(?=\w*[^\W\d])\w{1,256}")),
    ("cashtag", re.compile(r"(?<![\w$])\$[A-Z]{1,8}(?!\w)")),
)
Entity = dict[str, Any]


def read_entities(value: Any) -> list[Entity]:
    """The entities of a request. What is found in a text anyway (mentions, links) is left out."""
    entities = []
    for item in value if isinstance(value, list) else ():
        entity = _entity(item)
        if entity["type"] in OWN:
            entities.append(entity)
    return entities


def _entity(item: Any) -> Entity:
    broken = "Can't parse MessageEntity: "
    if not isinstance(item, dict):
        raise bad(f"{broken}expected an Object")
    for name in ("offset", "length", "type"):
        if name not in item:
            raise bad(f'{broken}Can\'t find field "{name}"')
    numbers = {name: whole_number(item[name]) for name in ("offset", "length")}
    for name, number in numbers.items():
        if number is None:
            raise bad(f'{broken}Field "{name}" must be of type Number')
    if not isinstance(item["type"], str) or item["type"] not in OWN | FOUND:
        raise bad(f"{broken}Unsupported type specified" if item["type"] else f"{broken}Type is not specified")
    argument = _ARGUMENTS.get(item["type"])
    if argument and argument not in item:
        raise bad(f'{broken}Can\'t find field "{argument}"')
    return {**item, **numbers}


def settle(text: str, entities: Sequence[Entity], *, allow_empty: bool = False) -> tuple[str, list[Entity]]:
    """Text and entities as they will stand in the chat. Raises Refusal for offsets that do not fit, and for a text of
    which nothing is to be seen."""
    _check_range(text, entities)
    spans = [span for span in _spans(text, entities) if span[0] < span[1]]
    clean, spans = _cleaned(text, spans)
    clean, spans = _trimmed(clean, spans)
    if not allow_empty and _INVISIBLE.fullmatch(clean):
        raise bad("Text must be non-empty")
    kept = list(_shrunk(clean, _nested(spans)))
    kept += _found(clean, kept)
    kept.sort(key=lambda span: (span[0], -span[1]))
    ruler = Ruler(clean)
    settled = []
    for start, end, entity in kept[:MOST_ENTITIES]:
        offset = ruler.units(start)
        settled.append({**entity, "offset": offset, "length": ruler.units(end) - offset})
    return clean, settled


# A span is (first character, one after the last, entity).
Span = tuple[int, int, Entity]


def _check_range(text: str, entities: Iterable[Entity]) -> None:
    for entity in entities:
        for name in ("offset", "length"):
            if not 0 <= entity[name] <= 1_000_000:
                raise bad(f"Receive an entity with incorrect {name} {entity[name]}")
    ruler = Ruler(text)
    for entity in sorted(entities, key=lambda entity: (entity["offset"], -entity["length"])):
        offset, end = entity["offset"], entity["offset"] + entity["length"]
        if not entity["length"]:
            continue
        if offset >= ruler.end:
            raise bad(f"Entity begins after the end of the text at UTF-16 offset {offset}")
        if end > ruler.end:
            raise bad(
                f"Entity beginning at UTF-16 offset {offset} ends after the end of the text at UTF-16 offset {end}"
            )
        if ruler.index(offset) is None:
            raise bad(f"Entity begins in a middle of a UTF-16 symbol at byte offset {_bytes(text, offset)}")
        if ruler.index(end) is None:
            where = f"at byte offset {_bytes(text, end)}"
            raise bad(f"Entity beginning at UTF-16 offset {offset} ends in a middle of a UTF-16 symbol {where}")


def _bytes(text: str, unit: int) -> int:
    """The UTF-8 position after the character that covers `unit`."""
    position = 0
    for index, character in enumerate(text):
        if position >= unit:
            return len(text[:index].encode())
        position += length(character)
    return len(text.encode())


def _spans(text: str, entities: Iterable[Entity]) -> Iterator[Span]:
    ruler = Ruler(text)
    for entity in entities:
        start, end = ruler.index(entity["offset"]), ruler.index(entity["offset"] + entity["length"])
        if start is not None and end is not None:
            yield start, end, entity


def _cleaned(text: str, spans: list[Span]) -> tuple[str, list[Span]]:
    gone = [match.start() for match in _REMOVED.finditer(text)]
    if not gone:
        return _CONTROL.sub(" ", text), spans
    clean = _CONTROL.sub(" ", _REMOVED.sub("", text))

    def moved(index: int) -> int:
        return index - sum(position < index for position in gone)

    return clean, [(moved(start), moved(end), entity) for start, end, entity in spans]


def _trimmed(text: str, spans: list[Span]) -> tuple[str, list[Span]]:
    """White space goes at the end, and at the beginning as far as no entity covers it; entities never begin with it."""
    end = len(text.rstrip(" \n"))
    kept = list(_shrunk(text, ((start, min(stop, end), entity) for start, stop, entity in spans)))
    first = min((start for start, _, _ in kept), default=end)
    cut = 0
    while cut < first and text[cut] in " \n":
        cut += 1
    return text[cut:end], [(start - cut, stop - cut, entity) for start, stop, entity in kept]


def _shrunk(text: str, spans: Iterable[Span]) -> Iterator[Span]:
    """Spans without the white space they begin with, unless nothing else is in them."""
    for start, stop, entity in spans:
        while start < stop and text[start] in " \n":
            start += 1
        if start < stop:
            yield start, stop, entity


def _nested(spans: list[Span]) -> Iterator[Span]:
    """Solid spans, of which the first of two that cross is kept, and styles, which are cut where they cross those."""
    solid: list[Span] = []
    for span in sorted((span for span in spans if span[2]["type"] not in STYLES), key=_order):
        if all(_apart(span, other) or _may_hold(other, span) or _may_hold(span, other) for other in solid):
            solid.append(span)
    yield from solid
    edges = sorted({edge for start, end, _ in solid for edge in (start, end)})
    code = [(start, end) for start, end, entity in solid if entity["type"] in CODE]
    for style in sorted(STYLES):
        for start, end in _united((span[0], span[1]) for span in spans if span[2]["type"] == style):
            cuts = [start, *(edge for edge in edges if start < edge < end), end]
            pieces = [
                (left, right)
                for left, right in pairwise(cuts)
                if not any(first <= left and right <= last for first, last in code)
            ]
            yield from ((left, right, {"type": style}) for left, right in _joined(pieces, solid))


def _order(span: Span) -> tuple[int, int]:
    return span[0], -span[1]


def _apart(one: Span, other: Span) -> bool:
    return one[1] <= other[0] or other[1] <= one[0]


def _may_hold(outer: Span, inner: Span) -> bool:
    """Only a quotation holds other solid entities, and no other quotation."""
    inside = outer[0] <= inner[0] and inner[1] <= outer[1]
    return inside and outer[2]["type"] in QUOTES and inner[2]["type"] not in QUOTES


def _united(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    current: tuple[int, int] | None = None
    for start, end in sorted(ranges):
        if current is None or start > current[1]:
            if current:
                yield current
            current = (start, end)
        else:
            current = (current[0], max(current[1], end))
    if current:
        yield current


def _joined(pieces: list[tuple[int, int]], solid: list[Span]) -> list[tuple[int, int]]:
    """Pieces that touch are one again, if together they only hold or lie within solid entities."""
    joined: list[tuple[int, int]] = []
    for piece in pieces:
        if joined and joined[-1][1] == piece[0] and _fits(joined[-1][0], piece[1], solid):
            joined[-1] = (joined[-1][0], piece[1])
        else:
            joined.append(piece)
    return joined


def _fits(start: int, end: int, solid: list[Span]) -> bool:
    return all(
        end <= first or last <= start or (start <= first and last <= end) or (first <= start and end <= last)
        for first, last, _ in solid
    )


def _found(text: str, spans: list[Span]) -> Iterator[Span]:
    """Commands, mentions, links and tags that are in the text itself, where no solid entity is."""
    if not re.search(r"[/@#$.]", text):
        return
    solid = [span for span in spans if span[2]["type"] not in STYLES]
    for kind, pattern in _PATTERNS:
        for match in pattern.finditer(text):
            span = (match.start(), match.end(), {"type": kind})
            if all(_apart(span, other) or _may_hold(other, span) for other in solid):
                solid.append(span)
                yield span
