"""Where an answer is cut that does not end by itself. Pure.

A model that has lost its way says the same again and again until somebody stops it: nobody wants to pay for that, nor
to read three hundred messages of it.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

LONGEST: Final = 131_072  # characters of an answer: 32,768 tokens, as most texts have them
_OF_A_TOKEN: Final = 10  # characters at most, on average: a limit of the model's own may allow more
_UNIT: Final = 200  # characters that are looked for again
_TIMES: Final = 20  # that they come again
_LONGEST: Final = 2_000  # characters of what is repeated
_LOOK: Final = 1_000  # new characters before the next look


class Bound(Struct):
    """Looks at an answer while it grows. `tokens`: the model's own limit, which its server keeps; None: it has none."""

    tokens: int | None
    repeats: bool = False  # why it was cut
    _looked: int = 0

    def cut(self, text: str) -> int | None:
        """Return how many characters of the answer so far are kept, where it must not go on; None: it may."""
        longest = max(LONGEST, _OF_A_TOKEN * (self.tokens or 0))
        if len(text) > longest:
            return longest
        if len(text) < self._looked + _LOOK:
            return None
        self._looked = len(text)
        kept = _once(text)
        self.repeats = kept is not None
        return kept


def _once(text: str) -> int | None:
    """Return the length of a text without the repetition at its end; None: it has none."""
    found = text.rfind(text[-_UNIT:], max(0, len(text) - _UNIT - _LONGEST), len(text) - 1)
    if found < 0:
        return None
    period = len(text) - _UNIT - found
    begin = len(text) - max(_TIMES * period, _TIMES * _UNIT)
    if begin < 0 or text[begin:-period] != text[begin + period :]:
        return None
    while begin and text[begin - 1] == text[begin - 1 + period]:
        begin -= 1
    return begin + period
