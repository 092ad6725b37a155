"""HTML within Markdown: tags that a chat can show become events, everything else stays text.

A Markdown parser takes `vector<int>` for a tag, and a page would not show it. Here only the tags below mean something,
and tags around text only in pairs within one block.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, Final

from gateway.delivery.markdown.events import Event

_SHOWN: Final = {
    **dict.fromkeys(("b", "strong", "summary", "mark"), "Strong"),
    **dict.fromkeys(("i", "em", "cite"), "Emphasis"),
    **dict.fromkeys(("u", "ins"), "Underline"),
    **dict.fromkeys(("s", "strike", "del"), "Strikethrough"),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), "Monospaced"),
    **dict.fromkeys(("tg-spoiler",), "Spoiler"),
    "sub": "Subscript",
    "sup": "Superscript",
    "a": "Link",
}
_LAYOUT: Final = frozenset(("p", "div", "span", "center", "details", "font"))  # what they say means nothing in a chat

_TAG: Final = re.compile(r"<(?P<slash>/?)(?P<name>[A-Za-z][\w-]*)(?P<attributes>(?:\s[^<>]*)?)/?>")
_TARGET: Final = re.compile(r"""\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)


def without_html(events: Iterable[Event]) -> list[Event]:
    """`events` without HTML: tags have become other events, or text."""
    found: list[Event] = []
    opened: list[tuple[str, int]] = []  # names of tags that wait for their end, and where in `found` they are
    for event in events:
        if event.name == "InlineHtml":
            _add(event.data, event, found, opened)
        elif event.name == "Html":
            _add_line(event, found, opened)
        else:
            if event.edge and event.name in ("Paragraph", "HtmlBlock", "Item", "Heading", "TableCell"):
                opened.clear()
            found.append(event)
    return found


def _add(raw: str, at: Event, found: list[Event], opened: list[tuple[str, int]]) -> None:
    """A tag, as text until its other half is found."""
    tag = _TAG.fullmatch(raw)
    name = tag["name"].lower() if tag is not None else ""
    if name == "br":
        found.append(at._replace(name="HardBreak", data=None))
        return
    if tag is not None and tag["slash"]:
        for position in range(len(opened) - 1, -1, -1):
            if opened[position][0] == name:
                index = opened[position][1]
                del opened[position:]
                found[index] = _start(name, found[index])
                found.append(at._replace(edge="end", name=_SHOWN.get(name, "Layout"), data=None))
                return
    elif name in _SHOWN or name in _LAYOUT:
        opened.append((name, len(found)))
    found.append(at._replace(name="Text", data=raw))


def _add_line(line: Event, found: list[Event], opened: list[tuple[str, int]]) -> None:
    """A line of an HTML block, which the parser has not read."""
    pieces = [piece for piece in _pieces(line.data.rstrip("\n")) if not _is_layout(piece)]
    if not any(piece.strip() for piece in pieces):
        return
    if found[-1].name != "HtmlBlock":
        found.append(line._replace(name="SoftBreak", data=None))
    for before, piece in pairwise(("", *pieces)):
        if before == "</summary>":
            found.append(line._replace(name="SoftBreak", data=None))
        if _TAG.fullmatch(piece):
            _add(piece, line, found, opened)
        else:
            found.append(line._replace(name="Text", data=html.unescape(piece)))


def _pieces(line: str) -> Iterator[str]:
    """Tags, and the text between them."""
    position = 0
    for tag in _TAG.finditer(line):
        yield from filter(None, (line[position : tag.start()], tag.group()))
        position = tag.end()
    if line[position:]:
        yield line[position:]


def _is_layout(piece: str) -> bool:
    """Whether a piece of a block is a tag that only matters to pages; its other half may be in another block."""
    tag = _TAG.fullmatch(piece)
    return tag is not None and tag["name"].lower() in _LAYOUT


def _start(name: str, raw: Event) -> Event:
    data: Any = None
    if name == "a":
        target = _TARGET.search(raw.data)
        address = next(filter(None, target.groups()), "") if target is not None else ""
        data = {"dest_url": html.unescape(address), "link_type": "Inline"}
    return raw._replace(edge="start", name=_SHOWN.get(name, "Layout"), data=data)
