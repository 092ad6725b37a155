"""Where in a text something may begin, and replacing what does: what kinds and assignments share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

MARK: Final = "[REDACTED]"


def folded(text: str) -> str:
    """`text` in lower case, character by character, with `?` for what is not ASCII."""
    return text.encode("ascii", "replace").lower().decode("ascii")


def places_of(literal: str, text: str) -> Iterator[int]:
    """Where `literal` stands in `text`, in order."""
    place = text.find(literal)
    while place >= 0:
        yield place
        place = text.find(literal, place + 1)


def replaced(
    text: str, places: Iterable[int], pattern: re.Pattern[str], replacement: Callable[[re.Match[str]], str]
) -> str:
    """What `pattern.sub` gives where no match begins anywhere but at `places`, which are in order."""
    pieces: list[str] = []
    done = 0
    for place in places:
        match = pattern.match(text, place) if place >= done else None
        if match is not None:
            pieces += (text[done:place], replacement(match))
            done = match.end()
    return "".join([*pieces, text[done:]]) if pieces else text


def spliced(match: re.Match[str], start: int, end: int) -> str:
    """The match with a mark in place of what stands from `start` to `end` of its text."""
    whole, offset = match[0], match.start()
    return whole[: start - offset] + MARK + whole[end - offset :]
