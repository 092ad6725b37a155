"""Markdown as one message of a platform: what is shown of it, and whether it fits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from gateway.delivery.markdown.characters import is_visible, length, sound
from gateway.delivery.markdown.layout import Medium, laid_out
from gateway.delivery.markdown.page import Span

Marked = tuple[str, Sequence[Span]]
"""A text and what is marked in it."""

MAY_FAIL: Final = (LookupError, RecursionError, TypeError, ValueError)
"""A mistake of ours or of a library costs a message its looks, and not its delivery."""

_TOO_MUCH: Final = 2.0  # the load of what cannot be laid out
EMPTY: Final = "(empty message)"


class Fitting(Struct, frozen=True, kw_only=True):
    """The messages of a platform that takes at most `longest` UTF-16 units, and shows `most_marks` marks in them.
    `finished` makes what is laid out ready to be sent."""

    longest: int
    medium: Medium
    most_marks: int = 1_000_000
    finished: Callable[[str, Sequence[Span]], Marked]

    def fitted(self, markdown: str) -> Marked | None:
        """One part of Markdown, laid out; None if nothing would be shown, or too much."""
        try:
            text, spans = self.finished(*laid_out(markdown, self.medium))
        except MAY_FAIL:
            return None
        return (text, spans) if is_visible(text) and self._full(text) <= 1 else None

    def load(self, part: str) -> float:
        """How full a message a part makes, plain or laid out: 1 is a whole message."""
        plain = self._full(part)
        if plain > 1:
            return plain
        shown = self.fitted(part)
        return _TOO_MUCH if shown is None else max(plain, self._full(shown[0]), len(shown[1]) / self.most_marks)

    def _full(self, text: str) -> float:
        return length(text, "utf16") / self.longest


def as_written(text: str) -> str:
    """A text that is no Markdown; never empty."""
    text = sound(text).strip()
    return text if is_visible(text) else EMPTY
