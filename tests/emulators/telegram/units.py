"""UTF-16 code units, in which Telegram counts offsets and lengths."""

from __future__ import annotations

from itertools import accumulate


def length(text: str) -> int:
    """Return the units of a text: one a character, two beyond the Basic Multilingual Plane."""
    return len(text) if text.isascii() else len(text) + sum(character > "\uffff" for character in text)


class Ruler:
    """Positions of one text, between characters and units."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._straight = not text or max(text) <= "\uffff"
        self._starts: list[int] = []
        self._index: dict[int, int] = {}
        if not self._straight:
            self._starts = [0, *accumulate(1 + (character > "\uffff") for character in text)]
            self._index = {unit: index for index, unit in enumerate(self._starts)}

    @property
    def end(self) -> int:
        """The length of the text in units."""
        return len(self._text) if self._straight else self._starts[-1]

    def units(self, index: int) -> int:
        """Return the place where the character at `index` begins."""
        return index if self._straight else self._starts[index]

    def index(self, unit: int) -> int | None:
        """The character that begins at `unit`; None in the middle of one."""
        return unit if self._straight else self._index.get(unit)
