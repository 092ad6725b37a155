"""Markdown made into Discord's, no longer than one message may be. Pure.

Discord reads most of Markdown itself (https://support.discord.com/hc/en-us/articles/210298617), but no tables, no
formulas and only three levels of headings, and the stars of a product and the underscores of `__init__.py` mean
emphasis to it. A text that is no Markdown is kept from being
read so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from adapters.discord.codec import LONGEST
from gateway.delivery.markdown.characters import is_visible, length, sound
from gateway.delivery.markdown.events import Event
from gateway.delivery.markdown.fitting import EMPTY, MAY_FAIL, as_written
from gateway.delivery.markdown.formulas import readable
from gateway.delivery.markdown.layout import Medium, laid_out
from gateway.delivery.markdown.page import Kind, Span
from gateway.delivery.markdown.reading import read
from gateway.delivery.markdown.splitting import Splitter

_SIGNS: Final = re.compile(r"[\\*_`~|]|^(?:#{1,3} |-# |>|[-+] |\d+\. )", re.MULTILINE)
_ADDRESS: Final = re.compile(r"(https?://\S+)")
_SCREEN: Final = 56  # columns that a block of code shows without breaking its lines
_DEEP: Final = re.compile(rb"#{4,6}")
_ELSE: Final = re.compile(r"\||####|__\w|\$\S|\\[(\[]")  # what may mean something else, or nothing, on Discord
_ESCAPED: Final = re.compile(r"\\([_*$~])")
_PRODUCT: Final = re.compile(r"(?<=[0-9A-Za-z])(\*{1,2})(?![\s*])[^*]*(?<=\S)\1(?=[0-9A-Za-z])")
_FENCE: Final = "```"
_MARKS: Final[dict[Kind, str]] = {"bold": "**", "code": "`"}


def shown(markdown: str) -> str:
    """Return one part of Markdown as Discord is to show it; never raises, never empty."""
    text = sound(markdown).strip("\n")
    if _ELSE.search(text) or ("*" in text and _has_product(text)):
        try:
            fitted = _fitted(text)
        except MAY_FAIL:
            fitted = text
        text = fitted if length(fitted, "utf16") <= LONGEST else text
    return text if is_visible(text) else EMPTY


def _has_product(text: str) -> bool:
    """Whether there are stars as in `2*3*4`. Those of an address are part of it."""
    return _PRODUCT.search(_ADDRESS.sub("", text)) is not None


def _fitted(text: str) -> str:
    """The text with its tables as code or as lines, its formulas as code, with no heading that Discord does not know,
    and with the stars of `2*3*4` and the underscores of `__init__` escaped, but for those of an address."""
    source, events = read(text)
    pieces: list[str] = []
    done = 0
    for start, end, instead in _replaced(source, events):
        if start >= done:  # not within a table
            pieces += [source[done:start].decode(), instead]
            done = end
    fitted = "".join([*pieces, source[done:].decode()])
    return _ADDRESS.sub(lambda found: _ESCAPED.sub(r"\1", found[0]), fitted)


def _replaced(source: bytes, events: Sequence[Event]) -> Iterator[tuple[int, int, str]]:
    """(start, end, replacement) of what Discord does not know, in order; tables and headings only if they are not in a
    quote or a list."""
    depth = 0
    for event in events:
        if event.edge == "start":
            if not depth and event.name == "Table":
                yield event.start, event.end, _table(source[event.start : event.end].decode())
            elif not depth and event.name == "Heading" and (deep := _DEEP.match(source, event.start)):
                yield event.start, deep.end(), "###"
            depth += 1
        elif event.edge == "end":
            depth -= 1
        elif event.name in ("InlineMath", "DisplayMath") and "`" not in event.data:
            yield event.start, event.end, _formula(source, event, alone=event.name == "DisplayMath" and depth == 1)


def _formula(source: bytes, event: Event, *, alone: bool) -> str:
    """A formula as code; `alone` if it is on lines of its own."""
    text = readable(event.data)
    if not alone:
        return f"`{' '.join(text.split())}`"
    before = "" if source[: event.start].rstrip(b" ")[-1:] in (b"", b"\n") else "\n"
    behind = "" if source[event.end :].lstrip(b" ")[:1] in (b"", b"\n") else "\n"
    return f"{before}{_FENCE}\n{text}\n{_FENCE}{behind}"


def _table(markdown: str) -> str:
    text, spans = laid_out(markdown, _MEDIUM)
    if _FENCE in text:
        return markdown
    if any(span.kind == "pre" for span in spans):
        return f"{_FENCE}\n{text}\n{_FENCE}\n"
    return _marked(text, spans) + "\n"


def _marked(text: str, spans: Sequence[Span]) -> str:
    """The text with signs for what is bold, code or a link in it."""
    signs: list[tuple[int, int, str]] = []
    for span in spans:
        if (mark := _MARKS.get(span.kind)) is not None:
            signs += [(span.start, 1, mark), (span.end, 0, mark)]
        elif span.kind == "text_link":
            signs += [(span.start, 1, "["), (span.end, 0, f"]({span.url})")]
    for at, _, sign in sorted(signs, reverse=True):
        text = text[:at] + sign + text[at:]
    return text


_MEDIUM: Final = Medium(cleaned=str, linked=str, table_columns=_SCREEN)


def plain(text: str) -> str:
    """A text that is not Markdown, in a form that Discord shows unchanged; never empty."""
    text = as_written(text)
    pieces = _ADDRESS.split(text)
    kept = "".join(piece if number % 2 else _SIGNS.sub(_literal, piece) for number, piece in enumerate(pieces))
    return kept if length(kept, "utf16") <= LONGEST else text


def _literal(found: re.Match[str]) -> str:
    return found[0].replace(".", "\\.") if found[0][0].isdigit() else f"\\{found[0]}"


def fits_caption(text: str) -> bool:
    """Whether a text can be shown with a file."""
    return length(shown(text), "utf16") <= LONGEST


def load(part: str) -> float:
    """Return how full a message a part makes: 1 is a whole message."""
    return length(part, "utf16") / LONGEST


split: Final = Splitter(limit=LONGEST, unit="utf16", load=load).split


# -- sources -------------------------------------------------------------------------------------------

# A card shows no words that the answer has not: the links at its end, in the line that a search leaves there, or in the
# model's own list under a heading that says what it is. https://discord.com/developers/docs/resources/message#embed-object
_SOURCES: Final = "Sources|References|Quellen|Fuentes|Références|Источники|来源|参考|出典"
_SOURCE_LINE: Final = re.compile(r"\n\n(Sources): (\[[^\n]+\]\(https?://[^\s()]+\))\s*\Z")
_SOURCE_LIST: Final = re.compile(
    rf"\n\s*(?:#{{1,3}} +)?(?:\*\*)?({_SOURCES})\s*[:：]?(?:\*\*)?[:：]?[ \t]*\n"
    r"((?:\s*(?:[-*]|\d{1,2}\.) .*https?://.*\n?)+)\s*\Z",
    re.IGNORECASE,
)
_LONGEST_CARD: Final = 4_000  # characters: Discord takes 4,096


def split_off(markdown: str) -> tuple[str, dict[str, Any] | None]:
    """The answer without its sources, and their card; None if there are none. While a card is shown, Discord also adds
    previews of the links in the text; if that has any, everything stays text."""
    found = (_SOURCE_LINE.search(markdown) or _SOURCE_LIST.search(markdown)) if "://" in markdown else None
    if found is None or len(found[2]) > _LONGEST_CARD:
        return markdown, None
    text = markdown[: found.start()].strip()
    if not text or "://" in text or text.count("```") % 2:
        return markdown, None
    return text, {"title": found[1].strip(), "description": found[2].strip().replace(") · [", ")\n[")}
