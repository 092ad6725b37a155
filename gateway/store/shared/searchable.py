"""The terms of a message that a search finds, the same for every store.

The words of a person and of the model are entered whole. A tool's result is entered, too, but apart: nobody was told
a result, and most of a result is bulk, so results are found only where the others leave room. Of a long result the
two ends are read, and the host's note. Only some numbers of a result are entered: a log has few words and no end of
numbers, each would be a term of its own, and people ask by words.

Nothing is entered of a compaction's summary, nor of a result that only repeats older messages (`recalled`): a search
would find its own finds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from itertools import chain, islice
from typing import Final, Literal

from gateway.domain.message import Message, ends, note_of, said_in, text_of
from gateway.words import text

Kind = Literal["said", "returned"]

KINDS: Final[tuple[Kind, ...]] = ("said", "returned")  # in the order in which a search finds them
RETURNED: Final = "r"  # marks a tool's results in an index
MADE: Final = 3  # raised with every change of terms, owners or kinds: entries of another way are made anew
RESULT_TERMS: Final = 800  # of one result, at most
RESULT_NUMBERS: Final = 100  # of these, terms with a digit in them
_MADE: Final = b"stems, listed"  # how entries are made: those without a list of an owner's words came before
_EDGE: Final = 8_000  # characters of a longer result that are read at each end


def owner_of(key: str, *, size: int) -> str:
    """A key as one short term, so that a search within it touches nobody else's messages. It holds no `RETURNED`.
    Entries with other terms have other owners."""
    return blake2b(key.encode("utf-8", "surrogatepass"), digest_size=size, person=_MADE).hexdigest()


def kind_of(message: Message) -> Kind | None:
    """The kind under which a message is indexed; None if it is not."""
    note = note_of(message)
    if note.get("summary") or note.get("fallback") or note.get("derived_from") or note.get("recalled"):
        return None
    if message["role"] == "tool":
        return "returned"
    return "said" if message["role"] in ("user", "assistant") else None


def terms_of(message: Message, kind: Kind | None) -> list[str]:
    """The terms under which a message of this kind is entered, each once."""
    if kind != "returned":
        return text.terms(said_in(message))
    found = every_term_of(message)
    numbers = (term for term in found if _is_number(term))
    words = (term for term in found if not _is_number(term))
    return list(islice(chain(islice(numbers, RESULT_NUMBERS), words), RESULT_TERMS))


def every_term_of(message: Message) -> list[str]:
    """All terms of a message, each once, even those that are too many to index. An early Legato may have chosen others
    of a long result, but none that are not here."""
    if kind_of(message) != "returned":
        return text.terms(said_in(message))
    found = text.terms(ends(text_of(message), _EDGE))
    return list(dict.fromkeys([*text.terms("\n".join(_noted(message))), *_ends_first(found)]))


def _is_number(term: str) -> bool:
    return any(map(str.isdigit, term))


def _noted(message: Message) -> Iterable[str]:
    values = note_of(message).get("identifiers")
    return (value for value in values if isinstance(value, str)) if isinstance(values, list) else ()


def _ends_first(terms: list[str]) -> Iterator[str]:
    """Terms from both ends inwards, so that if only some are taken, the middle is left out."""
    for place in range((len(terms) + 1) // 2):
        yield terms[place]
        yield terms[-1 - place]
