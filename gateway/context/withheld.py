"""What redaction takes out of a text, so that it can be taken out of another one as well.

A password is often given away by nothing but the words in front of it. A summariser that has read
those words may well repeat the password without them, and then no pattern would know it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from gateway.context.material import Redact
from gateway.context.shapes import calls_of
from gateway.domain.message import Message, text_of
from gateway.runtime.redaction import MARK, SHORTEST_SECRET

_APART: Final = "\n\n\x1e\n\n"


def withheld(messages: Iterable[Message], redact: Redact) -> list[str]:
    """What `redact` would replace in these messages, longest first; what is too short to be told from
    ordinary words is left out."""
    texts = [text for message in messages for text in (text_of(message), *(c.arguments for c in calls_of(message)))]
    whole = _APART.join(texts)
    if redact(whole) == whole:  # most of what redaction costs is looking whether there is anything
        return []
    found = {secret for text in texts for secret in _between(text, redact(text))}
    return sorted((secret for secret in found if len(secret) >= SHORTEST_SECRET), key=lambda each: (-len(each), each))


def without(text: str, secrets: Sequence[str]) -> str:
    """`text` with each of `secrets` replaced wherever it stands."""
    for secret in secrets:
        text = text.replace(secret, MARK)
    return text


def _between(text: str, redacted: str) -> Iterator[str]:
    """What stood where the marks are: whatever lies between the pieces that redaction left alone."""
    if text == redacted:
        return
    first, *pieces = redacted.split(MARK)
    place = len(first)
    for number, piece in enumerate(pieces, start=1):
        last = number == len(pieces)
        end = len(text) - len(piece) if last else text.find(piece, place + 1) if piece else -1
        if end < place:
            return  # two marks side by side, or marks in the text itself: what it was cannot be told
        yield text[place:end]
        place = end + len(piece)
