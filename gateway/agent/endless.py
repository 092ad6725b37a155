"""Where an answer is cut that does not end by itself. Pure.

A model that has lost its way says the same again and again until its limit stops it: nobody wants to read three hundred
messages of that. Before the limit nobody can tell: people ask for a line two hundred times, or a matrix of zeros.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

LONGEST: Final = 131_072  # characters of an answer: 32,768 tokens, as most texts have them
_OF_A_TOKEN: Final = 10  # characters at most, on average: a limit of the model's own may allow more
_UNIT: Final = 200  # characters that are looked for again
_TIMES: Final = 20  # that they come again
_LONGEST: Final = 2_000  # characters of what is repeated


class Bound(Struct):
    """Looks at an answer while it grows. `tokens`: the model's own limit, which its server keeps; None: it has none."""

    tokens: int | None
    repeats: bool = False  # why it was cut

    def cut(self, text: str) -> int | None:
        """Return how many characters of the answer so far are kept, where it must not go on; None: it may."""
        longest = max(LONGEST, _OF_A_TOKEN * (self.tokens or 0))
        return self.at_limit(text[:longest]) if len(text) > longest else None

    def at_limit(self, text: str) -> int:
        """Return how many characters are kept of an answer that its limit ended: what it repeated is said once."""
        kept = _once(text)
        self.repeats = kept is not None
        return len(text) if kept is None else kept


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
