"""Markup that nothing breaks out of: every text is escaped, unless it is an `Html`, which only `el` makes of others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Final, TypeAlias

_EMPTY: Final = frozenset(("br", "hr", "img", "input", "link", "meta", "rect", "line", "circle", "path"))
_ADDRESSES: Final = frozenset(("href", "src", "action"))
_LINKED: Final = re.compile(r"(?<![A-Za-z0-9])https?://\w[^\s<>\"\u3000-\u303f\uff00-\uffef]{0,4000}", re.IGNORECASE)
_BEHIND: Final = frozenset(".,:;!?'\"*_~…»”’")  # of the sentence around an address
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_SAFE: Final = re.compile(r"(?:https?://|mailto:|/(?!/)|\?|#)", re.IGNORECASE)


class Html(str):
    """A piece of a page."""

    __slots__ = ()


Child: TypeAlias = "str | int | Iterable[Child] | None"


def el(name: str, /, *children: Child, **attributes: str | int | float | bool | None) -> Html:
    """An element. `class_` and `for_` stand for `class` and `for`, `data_at` for `data-at`; True is an attribute
    without a value, None and False are none. An address that could run something is left out."""
    written = [f"<{name}"]
    for key, value in attributes.items():
        key = key.rstrip("_").replace("_", "-")
        if value is None or value is False or (key in _ADDRESSES and not is_address(str(value))):
            continue
        written.append(f" {key}" if value is True else f' {key}="{escape(str(value))}"')
    written += ["/>"] if name in _EMPTY else [">", joined(children), f"</{name}>"]
    return Html("".join(written))


def section(title: str, *children: Child, **attributes: str) -> Html:
    """A part of a page, below its title."""
    return el("section", el("h2", title), children, **attributes)


def folded(summary: Child, *children: Child, **attributes: str | bool | None) -> Html:
    """What shows once its summary is opened."""
    return el("details", el("summary", summary), children, **attributes)


def submit(label: Child, **attributes: str | bool | None) -> Html:
    """A button that sends its form."""
    return el("button", label, type="submit", **attributes)


def hidden(**values: str) -> list[Html]:
    """Fields of a form that nobody sees."""
    return [el("input", type="hidden", name=name, value=value) for name, value in values.items()]


def joined(children: Child) -> Html:
    """Children one after another."""
    if children is None:
        return Html("")
    if isinstance(children, Html):
        return children
    if isinstance(children, str | int):
        return Html(escape(str(children)))
    return Html("".join(map(joined, children)))


def is_address(url: str) -> bool:
    """Whether an address only shows something: of the web, of mail, or a path of this page."""
    return _SAFE.match(url) is not None and not any(
        character.isspace() or not character.isprintable() for character in url
    )


def link(url: str, *children: Child, **more: str) -> Html:
    """A link to elsewhere, which is told nothing of this page."""
    return el("a", children, href=url, rel="noopener noreferrer nofollow", target="_blank", **more)


def linked(text: str) -> Child:
    """A text in which the addresses of the web are links, without the punctuation and the brackets around them."""
    if "://" not in text:
        return text
    parts, done = list[Child](), 0
    for found in _LINKED.finditer(text):
        end = _end(found[0])
        if is_address(url := found[0][:end]):
            parts += [text[done : found.start()], link(url, url)]
            done = found.start() + end
    return [*parts, text[done:]]


def _end(url: str) -> int:
    """Where an address ends. A bracket that closes belongs to it if it opens there."""
    end = len(url)
    while (last := url[end - 1]) in _BEHIND or (
        last in _PAIRS and url.count(last, 0, end) > url.count(_PAIRS[last], 0, end)
    ):
        end -= 1
    return end
