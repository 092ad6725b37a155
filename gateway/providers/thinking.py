"""Thinking that arrives inside the text.

Servers that do not know a model's format pass its thoughts on as they are: `<think>…</think>`, then
the answer. Only a tag that opens the whole answer is taken for one; later ones are what somebody
writes about tags.
"""

from __future__ import annotations

from typing import Final

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"


class Thinking:
    """Splits the text of one answer, piece by piece. What might be half a tag is held back."""

    def __init__(self) -> None:
        self._held = ""
        self._place = "start"  # then "inside" or "after"; white space after the thoughts is "gap"

    def feed(self, text: str) -> tuple[str, str]:
        """(text, reasoning) that can be told apart by now."""
        if self._place == "after":
            return text, ""
        self._held += text
        thought = ""
        if self._place == "start":
            opening = self._held.lstrip()
            if opening.startswith(_OPEN):
                self._place, self._held = "inside", opening[len(_OPEN) :]
            elif _OPEN.startswith(opening):
                return "", ""
            else:
                return self.flush()
        if self._place == "inside":
            thought, closed, rest = self._held.partition(_CLOSE)
            if not closed:
                safe = len(thought) - _overlap(thought)
                self._held = thought[safe:]
                return "", thought[:safe]
            self._place, self._held = "gap", rest
        self._held = self._held.lstrip()
        return (*self.flush()[:1], thought) if self._held else ("", thought)

    def flush(self) -> tuple[str, str]:
        """What is still held back, now that no tag can be completed any more."""
        held, self._held = self._held, ""
        if self._place == "inside":
            return "", held
        self._place = "after"
        return held, ""


def _overlap(text: str) -> int:
    """How many characters at the end of `text` may be the beginning of the closing tag."""
    sizes = range(min(len(_CLOSE) - 1, len(text)), 0, -1)
    return next((size for size in sizes if text.endswith(_CLOSE[:size])), 0)
