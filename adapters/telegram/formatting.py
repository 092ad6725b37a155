"""Markdown as Telegram shows it: texts with entities, no longer than one message may be.

`split` is asked first and `render` later, for each part by itself, as each part is stored and sent by
itself. Entities are sent, never Telegram's own Markdown: a text with entities cannot fail to parse.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from adapters.telegram.characters import LONGEST, LONGEST_CAPTION, cleaned, units
from adapters.telegram.entities import MOST_ENTITIES, Entity, affordable, entities, tidied
from gateway.delivery.markdown.characters import is_visible, sound
from gateway.delivery.markdown.fitting import Fitting, Marked, as_written
from gateway.delivery.markdown.layout import Medium
from gateway.delivery.markdown.page import Span
from gateway.delivery.markdown.reading import PLAIN
from gateway.delivery.markdown.splitting import Splitter
from gateway.domain.adapter import REPEATED
from gateway.runtime.structs import replace

# Telegram refuses a whole message for one link that it takes for invalid (`LinkManager::check_link` in
# TDLib): the host has to have a dot, and few signs beside it.
_LINK: Final = re.compile(r"https?://[\w-]+(?:\.[\w-]+)+(?::(?P<port>[1-9]\d{0,4}))?(?:[/?#]\S*)?", re.IGNORECASE)
_TELEPHONE: Final = 38  # columns that it shows of a block of code without breaking its lines


class Rendered(Struct, frozen=True, kw_only=True):
    """One message: its text, and the marked places of the text."""

    text: str
    entities: tuple[Entity, ...]


def render(part: str) -> Rendered:
    """Return one part of Markdown as Telegram is to show it; never raises, never empty.

    What cannot be laid out, or would become longer than a message, is shown as it was written.
    """
    text, spans = marks(part)
    return Rendered(text=text, entities=entities(text, spans) if spans else ())


def marks(part: str) -> Marked:
    """The text of one part and what is marked in it."""
    shown = None if PLAIN.fullmatch(part) else _FITTING.fitted(part)
    return (_written(part), ()) if shown is None else (shown[0], affordable(shown[1]))


def plain(part: str) -> Rendered:
    """One part as it was written; never empty."""
    return Rendered(text=_written(part), entities=())


def _written(part: str) -> str:
    return as_written(cleaned(sound(part)))


def caption(text: str) -> Rendered:
    """Return the caption of a file, which may be empty."""
    return render(text) if is_visible(text) else Rendered(text="", entities=())


def fits_caption(text: str) -> bool:
    """Whether a file's caption holds a text, laid out or, if that is refused, as it was written."""
    return max(units(text), units(caption(text).text)) <= LONGEST_CAPTION


def _trimmed(text: str, spans: Sequence[Span]) -> tuple[str, Sequence[Span]]:
    """The text without the white space that Telegram would take from its ends; code keeps its first indent."""
    tidy = tidied(text, spans)
    first = min((span.start for span in tidy), default=len(text))
    lead = min(first, len(text) - len(text.lstrip()))
    moved = [replace(span, start=span.start - lead, end=span.end - lead) for span in tidy] if lead else tidy
    return text[lead:].rstrip(), moved


def _linked(target: str) -> str | None:
    """`target` as a link that Telegram takes; None if it would not."""
    address = re.sub(r"\s", "%20", target.strip())
    match = _LINK.fullmatch(address)
    return address if match is not None and int(match["port"] or 1) < 1 << 16 else None


_FITTING: Final = Fitting(
    longest=LONGEST,
    medium=Medium(cleaned=cleaned, linked=_linked, table_columns=_TELEPHONE),
    most_marks=MOST_ENTITIES,
    finished=_trimmed,
)
load: Final = _FITTING.load
split: Final = Splitter(limit=LONGEST - len(REPEATED), unit="utf16", load=load).split
