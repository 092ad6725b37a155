"""Standing rules in a message: "never …", "always …", "from now on …".

Only a message that is nothing but such an instruction counts: one short sentence that begins with it
and says by itself what is meant. What is missed costs its author a /pin; what is wrongly taken for a
rule would be in every later answer. So an instruction needs one of the verbs of the table, since "Always
wanted to see Rome" and "Never mind" begin alike.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from msgspec import Struct

from gateway.runtime.patterns import late, table

_LONGEST: Final = 200  # characters; a longer message is more than a rule
_MOST_MARKED: Final = 3 * _LONGEST  # the same, whose letters and marks are written one by one, as in Vietnamese

# A question, several lines or sentences: part of it would be about now.
_MORE: Final = re.compile(r"[?？¿\n\r]|[.!…]\s+\S|[。！；;]\s*\S|[吗嗎呢么麼][。.]?\Z")
# Words that mean something outside of the message, or tell a story. "When I ask …" tells none: it says when a rule
# holds.
_UNCLEAR: Final = re.compile(
    r"\b(?:that|this|it|so|them|these|those|here|again)[.!]*\Z"
    r"|(?<!\bif )(?<!\bwhen )(?<!\bwhenever )(?<!\bunless )(?<!\btime )\bI\b"
    r"|\bI\s+(?:did|got|had|have|said|told|was|went|wrote|\w+[^e]ed)\b|\b(?:ich|wir|man|hab\w*|hatte\w*|würde\w*)\b"
)
# Every rule has one of these: by them it holds for good. Most messages have none, and are held against no rule.
_FOR_GOOD: Final = re.compile(
    "always|ever|now|immer|stets|nie|jetzt|sofort|nun|künftig|zukunft|siempre|nunca|ahora|toujours|jamais|désormais"
    "|dorénavant|maintenant|всегда|никогда|отныне|впредь|момента|[后後现現今终終远遠必绝絕决決总總]|一律",
    re.IGNORECASE,
)
# Anchored, so that no text is searched from each of its words on.
_RULES: Final = tuple(late(rf"\A{one}\Z", re.IGNORECASE) for one in table(__file__)["sentences"])


def states_rule(text: str) -> bool:
    """Whether the text, in English, Chinese, Russian, Spanish, French or German, sets a rule for good."""
    if len(text) > _MOST_MARKED:  # the marks of a letter are put in order in quadratic time
        return False
    said = unicodedata.normalize("NFC", text.strip())
    if len(said) > _LONGEST or not _FOR_GOOD.search(said) or _MORE.search(said) or _UNCLEAR.search(said):
        return False
    return any(rule.match(said) for rule in _RULES)


# -- pins ----------------------------------------------------------------------------------------------


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
        """The rule after its author's name."""
        return f"[{self.by}] {self.text}" if self.by else self.text


class Pins(Struct, frozen=True, kw_only=True):
    """The rules of a key in the order in which they were set; people number them from 1.

    `set_by` is the id of the inbox item that made them what they are, so that another attempt at it
    finds its work done; None: nothing was ever pinned.
    """

    rules: tuple[Pin, ...] = ()
    set_by: str | None = None
