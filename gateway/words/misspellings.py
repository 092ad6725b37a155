"""Words that may be meant where no message holds a word of a question: by a slip of the pen, or because one is a part
of the other ("Versicherung", "Haftpflichtversicherung").

Words are terms of an index: stems, case-folded, without accents. The first letter of a word is nearly always right.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from gateway.words.languages import stems
from gateway.words.text import is_dense

_SHORTEST: Final = 4  # letters of a word that may have a slip
_LONG: Final = 8  # letters from which a word may have two
_PART: Final = 4  # letters of a part of a word
_REST: Final = 3  # letters of a word beside its part
_JOINED: Final = 3  # letters of a part, where articles and "and" are joined to words (Arabic, Hebrew)
_MOST: Final = 6  # words for one
_ABROAD: Final = range(0x0590, 0x0900)
_ARABIC: Final = range(0x0600, 0x0700)
_ONE_FORM: Final = str.maketrans("أإآىة", "ااايه")
_BEFORE: Final = re.compile(r"\A(?:[وف]?(?:بال|كال|لل|ال)|[وفبلك](?=...))")
_AFTER: Final = re.compile(r"(?<=...)(?:ات|ون|ين|ان|ها|هم|هن|نا|كم|تي|ته|تك|يه|ه|ي|ت|ك)\Z")


def may_slip(term: str) -> bool:
    """Whether a term is a word that others may be like."""
    return len(term) >= _SHORTEST and term.isalpha() and not is_dense(term)


class Vocabulary:
    """The words of an index, rising, and what is needed to find some fast: a store of 100,000 messages has 30,000."""

    def __init__(self, terms: Sequence[str] = ()) -> None:
        self._words = [term for term in terms if may_slip(term)]
        self._text = "\n".join(["", *self._words, ""])
        first, last = (bisect_left(self._words, chr(each)) for each in (_ARABIC.start, _ARABIC.stop))
        self._arabic: dict[str, list[str]] = {}  # by what is left of a word
        for word in self._words[first:last]:
            self._arabic.setdefault(_light(word), []).append(word)

    def alike(self, term: str) -> list[str]:
        """Return the words that a term may stand for, the nearest first: of words with slips only those with the
        fewest, and words that begin or end with the term."""
        if ord(term[0]) in _ARABIC:
            return [word for word in self._arabic.get(_light(term), ()) if word != term][:_MOST]
        letters, most = set(term), 2 if len(term) >= _LONG else 1
        slips: dict[str, int] = {}
        first, last = (bisect_left(self._words, start) for start in (term[0], chr(ord(term[0]) + 1)))
        for word in self._words[first:last]:
            if abs(len(word) - len(term)) <= most and len(letters ^ set(word)) <= 2 * most and word != term:
                slips[word] = distance(term, word)
        least = min(slips.values(), default=most)
        near = [(count, word) for word, count in slips.items() if count <= min(most, least)]
        near += [(most, word) for word in self._made_with(term) if word not in slips]
        near.sort(key=lambda one: (one[0], abs(len(one[1]) - len(term)), one[1]))
        return [word for _, word in near[:_MOST]]

    def parts(self, term: str, language: str) -> list[str]:
        """Return the words that a term may be made of, the longest first."""
        abroad = ord(term[0]) in _ABROAD
        least, rest = (_JOINED, 1) if abroad else (_PART, _REST)
        found: dict[str, None] = {}
        for size in range(len(term) - rest, least - 1, -1):
            pieces = [term[-size:]] if abroad else [term[-size:], term[:size], term[:size].removesuffix("s")]
            found.update(dict.fromkeys(each for piece in pieces for each in stems(piece, language) if self._has(each)))
        return list(found)[:_MOST]

    def _has(self, word: str) -> bool:
        place = bisect_left(self._words, word)
        return place < len(self._words) and self._words[place] == word

    def _made_with(self, term: str) -> Iterator[str]:
        if len(term) < _PART:
            return
        for sought in (f"\n{term}", f"{term}\n"):
            place = self._text.find(sought)
            while place >= 0:
                inside = place + 1 if sought[0] == "\n" else place
                start, end = self._text.rfind("\n", 0, inside) + 1, self._text.index("\n", inside)
                if end - start >= len(term) + _REST - 1:
                    yield self._text[start:end]
                place = self._text.find(sought, place + 1)


def _light(word: str) -> str:
    """Return an Arabic word without what is joined to it, its letters in one form each (a light stemmer, as Larkey and
    others, 2002, describe)."""
    bare = _AFTER.sub("", _BEFORE.sub("", word.translate(_ONE_FORM)))
    return bare if len(bare) >= _JOINED else word.translate(_ONE_FORM)


def distance(one: str, other: str) -> int:
    """Return how many letters were left out, added, changed or swapped with the next one (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        current = [place]
        for number, beside in enumerate(other, 1):
            cost = min(row[number] + 1, current[-1] + 1, row[number - 1] + (letter != beside))
            if place > 1 and number > 1 and letter == other[number - 2] and one[place - 2] == beside:
                cost = min(cost, before[number - 2] + 1)
            current.append(cost)
        before, row = row, current
    return row[-1]
