"""Markdown made into Slack's rich text, no longer than one message may be. Pure.

https://docs.slack.dev/reference/block-kit/blocks/rich-text-block: a text with its styles beside it cannot be misread,
as Slack's own Markdown can, and pings nobody, whatever it says. The `text` of a message is what notifications show.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from gateway.delivery.markdown.characters import length
from gateway.delivery.markdown.fitting import Fitting, Marked, as_written
from gateway.delivery.markdown.layout import Medium
from gateway.delivery.markdown.page import Kind, Span
from gateway.delivery.markdown.splitting import Splitter
from gateway.domain.adapter import REPEATED

LONGEST: Final = 4_000  # characters of an edited message: https://docs.slack.dev/reference/methods/chat.update
_MOST_MARKED: Final = 400  # pieces of one message; Slack names no limit
_SCREEN: Final = 64  # columns that a block of code shows without breaking its lines
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"']{0,2900}[^\s<>\"'.,;:!?)\]]")
_STYLES: Final[dict[Kind, str]] = {"bold": "bold", "italic": "italic", "strikethrough": "strike", "code": "code"}
_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})

Json = dict[str, Any]


class Shown(Struct, frozen=True, kw_only=True):
    """One message: its text, and its elements of rich text."""

    text: str
    elements: list[Json]

    @property
    def block(self) -> Json:
        """The block of the message."""
        return {"type": "rich_text", "elements": self.elements}

    @property
    def fallback(self) -> str:
        """The text for notifications, which is never longer than a message."""
        escaped = self.text.translate(_ESCAPES)
        return escaped if length(escaped, "utf16") <= LONGEST else self.text[: LONGEST // 10].translate(_ESCAPES) + "…"


def shown(markdown: str) -> Shown:
    """One part of Markdown as Slack is to show it; never raises, never empty."""
    fitted = _FITTING.fitted(markdown)
    return plain(markdown) if fitted is None else Shown(text=fitted[0], elements=_elements(*fitted))


def plain(text: str) -> Shown:
    """A text that is no Markdown."""
    text = as_written(text)
    return Shown(text=text, elements=_elements(text, ()))


def bare(block: Json) -> Json:
    """A block of rich text without its marks and links; any other as it is."""
    if block["type"] != "rich_text":
        return block
    groups = [[each.get("text") or each["url"] for each in group["elements"]] for group in block["elements"]]
    text = {"type": "text", "text": "\n".join("".join(pieces) for pieces in groups)}
    return {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": [text]}]}


def marks(markdown: str) -> Marked:
    """The text of one part and what is marked in it."""
    return _FITTING.fitted(markdown) or (plain(markdown).text, ())


def _linked(target: str) -> str | None:
    return target if re.fullmatch(r"(?:https?://|mailto:)\S+", target) and len(target) <= 3_000 else None


def _finished(text: str, spans: Sequence[Span]) -> Marked:
    """The text with no more marks than Slack shows. Raises ValueError."""
    if len(spans) > _MOST_MARKED:
        raise ValueError("too much is marked")
    return text.rstrip(), spans


_FITTING: Final = Fitting(
    longest=LONGEST,
    medium=Medium(cleaned=str, linked=_linked, table_columns=_SCREEN),
    most_marks=_MOST_MARKED,
    finished=_finished,
)
split: Final = Splitter(limit=LONGEST - len(REPEATED), unit="utf16", load=_FITTING.load).split


def _elements(text: str, spans: Sequence[Span]) -> list[Json]:
    """Sections, quotes and blocks of code, in order; each holds its pieces of text."""
    groups: list[tuple[str, list[Json]]] = []
    for start, end, around in _pieces(text, spans):
        kinds = {span.kind for span in around}
        kind = "preformatted" if "pre" in kinds else "quote" if "blockquote" in kinds else "section"
        if not groups or groups[-1][0] != kind:
            groups.append((kind, []))
        style = {_STYLES[each]: True for each in kinds if each in _STYLES and kind != "preformatted"}
        url = next((span.url for span in around if span.url), None)
        groups[-1][1].extend(_texts(text[start:end], url, style))
    return [
        {"type": f"rich_text_{kind}", "elements": found}
        for number, (kind, pieces) in enumerate(groups)
        if (found := _trimmed(pieces, first=number == 0, last=number == len(groups) - 1))
    ]


def _pieces(text: str, spans: Sequence[Span]) -> Iterator[tuple[int, int, list[Span]]]:
    """(start, end, the marks around it) of each piece of the text between two bounds of marks."""
    bounds = sorted({0, len(text), *(min(at, len(text)) for span in spans for at in (span.start, span.end))})
    coming, around = sorted(spans, key=lambda span: span.start), list[Span]()
    at = 0
    for start, end in pairwise(bounds):
        while at < len(coming) and coming[at].start <= start:
            around.append(coming[at])
            at += 1
        around = [span for span in around if span.end > start]
        yield start, end, around


def _texts(text: str, url: str | None, style: Json) -> Iterator[Json]:
    """A piece as elements; the addresses in it are links, which Slack does not look for by itself."""
    how = {"style": style} if style else {}
    if url is not None:
        yield {"type": "link", "url": url, "text": text, **how}
        return
    done = 0
    for found in _ADDRESS.finditer(text) if "code" not in style else ():
        if found.start() > done:
            yield {"type": "text", "text": text[done : found.start()], **how}
        yield {"type": "link", "url": found[0], **how}
        done = found.end()
    if done < len(text):
        yield {"type": "text", "text": text[done:], **how}


def _trimmed(pieces: list[Json], *, first: bool, last: bool) -> list[Json]:
    """The pieces of a group without the line ends beside its neighbours, which stand on lines of their own."""
    while not first and pieces and pieces[0]["type"] == "text":
        pieces[0] = {**pieces[0], "text": pieces[0]["text"].lstrip("\n")}
        if pieces[0]["text"]:
            break
        del pieces[0]
    while not last and pieces and pieces[-1]["type"] == "text":
        pieces[-1] = {**pieces[-1], "text": pieces[-1]["text"].rstrip("\n")}
        if pieces[-1]["text"]:
            break
        del pieces[-1]
    return pieces
