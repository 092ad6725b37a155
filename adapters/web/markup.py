"""Markup that nothing breaks out of: every text is escaped, unless it is an `Html`, which only `el` makes of others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Final, TypeAlias

_EMPTY: Final = frozenset(("br", "hr", "img", "input", "link", "meta", "rect", "line", "circle", "path"))
_ADDRESSES: Final = frozenset(("href", "src", "action"))
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
