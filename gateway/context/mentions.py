"""Mentions: whether a text holds an identifier alone, and not as part of a longer word or number."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_PART: Final = re.compile(r"[A-Za-z0-9]+|[^\x00-\x7f]")  # of a value; in a script without spaces, a character


def mentions(text: str, value: str) -> bool:
    """Whether `text` contains `value` by itself, and not as part of a longer word or number."""
    return place_in(text, value) >= 0


def place_in(text: str, value: str) -> int:
    """Return the first place where `text` holds `value` alone; -1 for none."""
    start = text.find(value)
    while start >= 0:
        before, after = text[start - 1 : start], text[start + len(value) : start + len(value) + 1]
        if not (_joins(before) and _joins(value[0])) and not (_joins(after) and _joins(value[-1])):
            return start
        start = text.find(value, start + 1)
    return -1


class Named:
    """A growing text in which many identifiers are looked for.

    If it mentions an identifier, each run of letters and digits of that is a whole run of the text, and each of its
    other characters is in the text. So most of those that it does not mention need no search.
    """

    def __init__(self, text: str = "") -> None:
        self._text = text
        self._runs = set(_PART.findall(text))
        self._added: list[str] = []
        self._by_run: dict[str, list[str]] = {}  # the same

    def mentions(self, value: str) -> bool:
        """Whether the text mentions a value, as `mentions` tells."""
        return self._holds(value, _PART.findall(value))

    def takes(self, value: str) -> bool:
        """Append a value on a line of its own, unless the text mentions it. Returns whether it was appended."""
        runs = _PART.findall(value)
        if self._holds(value, runs):
            return False
        self._added.append(value)
        self._runs.update(runs)
        for run in set(runs):
            self._by_run.setdefault(run, []).append(value)
        return True

    def _holds(self, value: str, runs: Sequence[str]) -> bool:
        if not self._runs.issuperset(runs):
            return False
        if mentions(self._text, value):
            return True
        others = min((self._by_run.get(run, ()) for run in runs), key=len, default=self._added)
        return any(mentions(other, value) for other in others)


def _joins(character: str) -> bool:
    return character.isascii() and character.isalnum()
