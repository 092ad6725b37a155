"""Pins: rules that people set, which stand word for word in every prompt of their conversation."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MOST_PINS: Final = 20
LONGEST_PIN: Final = 500  # characters
PINS_SHARE: Final = 0.05  # of the context length: what all pins of a conversation may take together


class Pin(Struct, frozen=True, kw_only=True):
    """One rule in its author's words, and when they set it (seconds since the epoch). `by`: the author, in a
    conversation of several people."""

    text: str
    at: float
    by: str = ""

    @property
    def signed(self) -> str:
        """Return the rule behind its author's name."""
        return f"[{self.by}] {self.text}" if self.by else self.text


class Pins(Struct, frozen=True, kw_only=True):
    """The rules of a key in the order in which they were set; people number them from 1.

    `set_by` is the id of the inbox item that made them what they are, so that another attempt at it
    finds its work done; None: nothing was ever pinned.
    """

    rules: tuple[Pin, ...] = ()
    set_by: str | None = None
