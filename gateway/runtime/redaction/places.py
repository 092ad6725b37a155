"""Shared by all searches for credentials: the places where one may begin, and cutting it out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

MARK: Final = "[REDACTED]"

Span = tuple[int, int]
"""(start, end) of a credential in a text."""


def folded(text: str) -> str:
    """`text` in lower case, character by character, with `?` for what is not ASCII."""
    return text.encode("ascii", "replace").lower().decode("ascii")


def places_of(literal: str, text: str) -> Iterator[int]:
    """Yield the places of `literal` in `text`, in order."""
    place = text.find(literal)
    while place >= 0:
        yield place
        place = text.find(literal, place + 1)


def matches(text: str, places: Iterable[int], pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield the matches of `pattern.finditer` that begin at one of `places`, which are in order."""
    done = 0
    for place in places:
        match = pattern.match(text, place) if place >= done else None
        if match is not None:
            yield match
            done = match.end()


def cut(text: str, spans: Iterable[Span]) -> str:
    """`text` with one mark in place of each span; spans that touch or overlap are one."""
    pieces: list[str] = []
    done = 0
    for start, end in merged(spans):
        pieces += (text[done:start], MARK)
        done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def merged(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, those that touch or overlap as one."""
    found: list[Span] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found
