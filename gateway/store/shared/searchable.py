"""What of a message a search finds, the same for every store.

What a person or the model said is entered whole. What a tool returned is entered too, but apart, since it
is found only where the others leave room: it was never said to anybody, and most of it is bulk. Of a long
result the two ends are read, with what the host noted of it; and of its numbers only some, because a log
has few words and no end of numbers, each of which would be a term of its own, and people ask by words.

Nothing is entered of what a compaction wrote, nor of a result that only repeats what was said (`recalled`):
a search would find its own finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import chain, islice
from typing import Final, Literal

from gateway.domain.message import Message, note_of, said_in, text_of
from gateway.store.shared import text

Kind = Literal["said", "returned"]

KINDS: Final[tuple[Kind, ...]] = ("said", "returned")  # in the order in which they are found
RETURNED: Final = "r"  # tells, in an index, what tools returned from what was said
RESULT_TERMS: Final = 800  # that one result is entered under at most
RESULT_NUMBERS: Final = 100  # of these, terms with a digit in them
_EDGE: Final = 8_000  # characters of a longer result that are read at each end


def owner_of(key: str, *, size: int) -> str:
    """A key as one short term, so that a search within it touches nobody else's messages. It holds no `RETURNED`."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()


def kind_of(message: Message) -> Kind | None:
    """As what a message is entered; None: not at all."""
    note = note_of(message)
    if note.get("summary") or note.get("fallback") or note.get("derived_from") or note.get("recalled"):
        return None
    if message["role"] == "tool":
        return "returned"
    return "said" if message["role"] in ("user", "assistant") else None


def terms_of(message: Message) -> list[str]:
    """The terms under which a message of either kind is entered, each once."""
    if kind_of(message) != "returned":
        return text.terms(said_in(message))
    content = text_of(message)
    found = text.terms(content if len(content) <= 2 * _EDGE else f"{content[:_EDGE]}\n{content[-_EDGE:]}")
    noted = text.terms("\n".join(_noted(message)))
    numbers = (term for term in dict.fromkeys([*noted, *_ends_first(found)]) if _is_number(term))
    words = (term for term in dict.fromkeys([*noted, *_ends_first(found)]) if not _is_number(term))
    return list(islice(chain(islice(numbers, RESULT_NUMBERS), words), RESULT_TERMS))


def _is_number(term: str) -> bool:
    return any(map(str.isdigit, term))


def _noted(message: Message) -> Iterable[str]:
    values = note_of(message).get("identifiers")
    return (value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


def _ends_first(terms: list[str]) -> Iterator[str]:
    """From both ends inwards: where not all are taken, those in the middle are left out."""
    for place in range((len(terms) + 1) // 2):
        yield terms[place]
        yield terms[-1 - place]
