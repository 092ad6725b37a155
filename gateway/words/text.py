"""Cuts text into search terms, the same for every store.

Words lie between spaces and punctuation; they are case-folded and entered by their stems. A name such as getUserDetails
is entered by its parts, too. Scripts that are written
without spaces (Chinese, Japanese, Korean, Thai…) have no such words: a run of their characters becomes its overlapping
pairs, and its last character alone. So every character begins some term: any two adjacent characters are a term, and
one character is found as a prefix.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice, repeat
from operator import itemgetter
from typing import Final, Literal

from msgspec import Struct

from gateway.domain.message import ends
from gateway.runtime.patterns import late
from gateway.words.languages import ENGLISH, is_stop, language_of, stems

_ASKED: Final = 2_000  # characters of a question: where there are more, those at its two ends
_MOST_WORDS: Final = 200  # of a question
_KEPT: Final = 2  # characters at the beginning of a word that a stemmer leaves as they are
_MOST_SPOTS: Final = 2_000
_SLICE: Final = 65_536  # characters of a text that are read at once, where all of it is
_OVERLAP: Final = 256  # more than a phrase, or a word that is told by all of its characters
MAX_TERM: Final = 64  # characters; a search finds a longer word (base64, a hash) by its beginning

# Thai, Lao, Myanmar, Hangul jamo, Khmer; kana, bopomofo; Han; Hangul; Han of the other planes.
_DENSE: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff"
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u318f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs and points that belong to a word although they are not letters to `\w`.
_MARKS: Final = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
_DENSE_START: Final = late(f"[{_DENSE}]")
# No part gives back what it took: character by character, a word of a megabyte would take half a second in one call.
_RUN: Final = re.compile(f"([{_DENSE}]+)|((?:[^\\W_{_DENSE}]++|[{_MARKS}]++)+)")
# Parts of a text that are normalised one by one, most of them between words: the marks of one letter are put in order
# in quadratic time, and one character may become eighteen.
_PART: Final = 128
_PARTS: Final = re.compile(rf".{{1,{_PART}}}(?=\s)|.{{1,{_PART}}}", re.DOTALL)

_WORD_OF: Final = itemgetter(1)  # a run; "" if it is of a script without spaces
_WORD: Final = re.compile(r"[^\W_]+")  # counted in many texts: `_RUN` takes six times as long
_HUMPED: Final = re.compile(r"(?<![^\W_])(?=[A-Za-z]*[a-z][A-Z])[A-Za-z]{3,64}(?![^\W_])")  # getUserDetails
_INSIDE: Final = re.compile(r"[a-z][A-Z]")
_HUMP: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_QUESTION_MARKS: Final = ("?", "？", "؟")
_END_MARKS: Final = frozenset(".!?。！？؟")
_AROUND: Final = "\"'“”„«»「」.,;:!?()"  # a word that people name, and that is no part of it
_ENDS: Final = re.compile(r"(?<=[.!?])(?=\s)|(?<=[。！？؟\n])")  # of sentences
# A plural behind a word that asks, or a word for all.
_SEVERAL: Final = late(
    r"\b(?:(?:which|what|quel(?:le)?s|qué|cuáles) (?!(?:is|was|does|has|this|less)\b)\w{2,}s|welche \w+[ens]|every|list"
    r"|all|alle|tous|toutes|todos|todas)\b|哪些|所有|全部",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r'"([^"]{2,200})"|“([^”]{2,200})”|«([^»]{2,200})»|„([^“]{2,200})“|「([^」]{2,200})」')


def normalised(text: str) -> str:
    """The form in which texts are compared: compatibility forms (full-width letters) and case folded."""
    if len(text) <= _PART or text.isascii():
        return unicodedata.normalize("NFKC", text).casefold()
    return "".join(_in_parts("NFKC", text)).casefold()


def _in_parts(form: Literal["NFD", "NFKC"], text: str) -> Iterator[str]:
    return (unicodedata.normalize(form, part[0]) for part in _PARTS.finditer(text))


def terms(text: str) -> list[str]:
    """The distinct search terms of a text, in the order they first appear."""
    runs = _runs(text)
    language = language_of(map(_WORD_OF, runs))
    found: list[str] = []
    for dense, word in dict.fromkeys(runs):  # a long text says most of its words often
        if word:
            found += stems(word[:MAX_TERM], language)
        else:
            found += *_pairs(dense), dense[-1]
    for name in _HUMPED.findall(text) if _INSIDE.search(text) else ():
        for part in _HUMP.findall(name):
            found += stems(part[:MAX_TERM].casefold(), language)
    return list(dict.fromkeys(found))


class Question(Struct, frozen=True, kw_only=True):
    """The terms of a search. `wanted`: for each word, the terms that stand for the word; a term "^x" is any term that
    begins with x. `phrases`: the words between quotation marks, normalised, that a message must hold. `runs`: what
    stands together in a script without spaces, of which `wanted` has the pairs. `beside`: the places of what counts
    less: words that stand only beside the sentence that asks, and pairs that are half of a word without meaning."""

    wanted: tuple[tuple[str, ...], ...] = ()
    phrases: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()
    language: str = ENGLISH
    beside: frozenset[int] = frozenset()
    only_phrases: bool = False  # nothing else is asked for

    @property
    def terms(self) -> tuple[str, ...]:
        """All the terms, each once."""
        return tuple(dict.fromkeys(term for alternatives in self.wanted for term in alternatives))


def question(words: str, *, stops: bool = False) -> Question:
    """Return the terms of a search for `words`. Words that say nothing about a subject are left out, unless there are
    no others or `stops` asks for them, too. Of a very long question its two ends are read: people ask at the end."""
    said = asked_in(words)
    asked = normalised(said)
    runs = _runs(asked)
    language = language_of(map(_WORD_OF, runs))
    names = frozenset(_capitals(said))
    wanted = _wanted(runs, language, names)
    telling = [alternatives for alternatives, is_one in wanted.items() if stops or not is_one] or list(wanted)
    asking, half = _wanted(_runs(_asking_in(asked)), language, names), _half_empty(runs)
    phrases = tuple(filter(None, (" ".join(found).strip() for found in _QUOTED.findall(asked))))
    return Question(
        wanted=tuple(telling[:_MOST_WORDS]),
        phrases=phrases,
        runs=tuple(dict.fromkeys(dense for dense, _ in runs if len(dense) > 2)),
        language=language,
        beside=frozenset(
            place for place, each in enumerate(telling) if (asking and each not in asking) or each[0] in half
        ),
        only_phrases=bool(phrases) and not _RUN.search(_QUOTED.sub(" ", asked)),
    )


def _capitals(text: str) -> Iterator[str]:
    """The case-folded words that begin with a capital, but for the first of a question, which has one anyway: `Wo`."""
    for sentence in _ENDS.split(text):
        found = _WORD.findall(sentence)
        asks = sentence.rstrip().endswith(_QUESTION_MARKS)
        yield from (word.casefold() for word in (found[1:] if asks else found) if word[0].isupper())


def telling(text: str) -> list[tuple[str, ...]]:
    """For each word of a text that says something about a subject, the terms that stand for the word; for all of its
    words where none does."""
    runs = _runs(normalised(text))
    wanted = _wanted(runs, language_of(map(_WORD_OF, runs)))
    return [alternatives for alternatives, is_one in wanted.items() if not is_one] or list(wanted)


def _wanted(
    runs: Iterable[tuple[str, str]], language: str, names: frozenset[str] = frozenset()
) -> dict[tuple[str, ...], bool]:
    """Return for each word the terms that stand for it, and whether it says nothing about a subject. `names`: words
    that have a capital, which are names (Mia, Lei) unless they say nothing in the language of the text."""
    wanted: dict[tuple[str, ...], bool] = {}
    for dense, word in runs:
        if word:
            wanted[stems(word[:MAX_TERM], language)] = is_stop(word, language if word in names else "")
        elif len(dense) == 1:
            wanted[("^" + dense,)] = is_stop(dense)
        else:
            wanted.update(((pair,), is_stop(pair)) for pair in _pairs(dense))
    return wanted


def _half_empty(runs: Iterable[tuple[str, str]]) -> frozenset[str]:
    """The pairs of which half belongs to a neighbour that says nothing about a subject, wherever they stand. The other
    half may be all of a word, such as a car's in "where is my car": they tell less than others, but not nothing."""
    whole, half = set[str](), set[str]()
    for dense, _ in runs:
        pairs = [*_pairs(dense)]
        empty = [is_stop(pair) for pair in pairs]
        for place, pair in enumerate(pairs):
            (half if any(empty[max(0, place - 1) : place + 2]) else whole).add(pair)
    return frozenset(half - whole)


def _asking_in(text: str) -> str:
    """Return the sentences of a text that ask, if others stand beside them; "" otherwise."""
    said = [each for each in _ENDS.split(text) if each.strip() and each not in _END_MARKS]
    asking = [each for each in said if each.rstrip().endswith(_QUESTION_MARKS)]
    return "\n".join(asking) if 0 < len(asking) < len(said) else ""


def asked_in(words: str) -> str:
    """Return the part of a question that is read: of a very long one its two ends."""
    return ends(words, _ASKED // 2)


def asks(text: str) -> bool:
    """Whether a text is a question for the most part."""
    text = text.rstrip()
    if not text.endswith(_QUESTION_MARKS):
        return False
    begin = max((found.end() for found in _ENDS.finditer(text, 0, len(text) - 1)), default=0)
    return 2 * (len(text) - begin) >= len(text)


def parts_of(text: str) -> frozenset[str]:
    """The words of a text as they are spelled, and the pairs of characters of a script without spaces: to compare it
    with another."""
    return frozenset(part for dense, word in _runs(text) for part in ((word,) if word else (dense[0], *_pairs(dense))))


def holds_phrases(text: str, wanted: Question) -> bool:
    """Whether a text has every phrase of a question."""
    if not wanted.phrases:
        return True
    plain = " ".join(normalised(text).split())
    return all(phrase in plain for phrase in wanted.phrases)


def asks_for_several(question: str) -> bool:
    """Whether a question is for a list, as far as its words say that."""
    return _SEVERAL.search(question) is not None


class Holds:
    """Says which words of a question stand in texts, as an index would: `held` gives their places in the question.
    Every text is read, so nothing is missed; about 100 MB a minute where most texts hold none of the words."""

    def __init__(self, words: str) -> None:
        self._wanted = question(words)
        self.wanted = self._wanted.wanted  # by its place, the terms that stand for each word
        self.every = frozenset(range(len(self.wanted)))
        terms = self._wanted.terms
        # A stemmer changes the ends of words alone, except of a few short ones (die, dying): then each text is cut.
        starts = {
            _bare(each.removeprefix("^") if is_dense(each) else each[: max(_KEPT, len(each) - 2)]) for each in terms
        }
        self._starts = starts if all(len(each) > 3 or is_dense(each) for each in terms) else {""}

    def held(self, text: str) -> frozenset[int]:
        """The places of the words that a text holds. A long one is read in slices."""
        return frozenset[int]().union(
            *(self._held(text[first : first + _SLICE]) for first in range(0, len(text), _SLICE - _OVERLAP))
        )

    def _held(self, text: str) -> frozenset[int]:
        plain = _bare(normalised(text))
        if not any(start in plain for start in self._starts) or not holds_phrases(text, self._wanted):
            return frozenset()
        known = frozenset(terms(text))
        return frozenset(
            place
            for place, alternatives in enumerate(self._wanted.wanted)
            if any(each in known or (each[0] == "^" and each[1:] in plain) for each in alternatives)
        )


def _bare(text: str) -> str:
    """A normalised text without accents."""
    if text.isascii():
        return text
    plain = "".join(each for part in _in_parts("NFD", text) for each in part if not unicodedata.combining(each))
    return unicodedata.normalize("NFC", plain)


class HoldsInside(Holds):
    """The same, wherever the words stand: inside longer words (Bäckerei in Großbäckerei), beside characters that nobody
    sees, or made of what is no letter (an emoji). Words of one or two characters are left out: they are anywhere."""

    def __init__(self, words: str) -> None:
        parts = [part.strip(_AROUND) or part for part in _visible(words).split()]
        self._parts = [part for part in parts if len(part) > _KEPT or not part.isalnum()]
        self.every = frozenset(range(len(self._parts)))

    def _held(self, text: str) -> frozenset[int]:
        plain = _visible(text)
        return frozenset(place for place, part in enumerate(self._parts) if part in plain)


def _visible(text: str) -> str:
    """A text in the form in which it is compared, without accents and without characters that nobody sees."""
    plain = _bare(normalised(text))
    return plain if plain.isascii() else "".join(each for each in plain if unicodedata.category(each) != "Cf")


class Occurrences:
    """Counts the words of a question in texts. Each form of a word is looked at once. `dense`: the places of words of
    scripts without spaces."""

    def __init__(self, wanted: Question) -> None:
        self._wanted = wanted
        self._place_of = {term: place for place, alternatives in enumerate(wanted.wanted) for term in alternatives}
        self._dense = [(term.removeprefix("^"), place) for term, place in self._place_of.items() if is_dense(term)]
        self.dense = frozenset(place for _, place in self._dense)
        self._form: re.Pattern[str] | None = None  # of the words to look at; to compile it takes a millisecond
        self._forms: dict[str, int | None] = {}  # a word as texts spell it, and its place in the question

    def counts(self, text: str) -> list[int]:
        """Return how often each word stands in a text."""
        found = [0] * len(self._wanted.wanted)
        if self._form is None:
            self._form = _begun_by(frozenset(term[:_KEPT] for term in self._place_of if not is_dense(term)))
        for word in self._form.findall(text.casefold()):
            if word not in self._forms:
                self._forms[word] = self._place(word)
            known = self._forms[word]
            if known is not None:
                found[known] += 1
        for term, place in self._dense:
            found[place] += text.count(term)
        return found

    def _place(self, word: str) -> int | None:
        held = [term for term in stems(word[:MAX_TERM], self._wanted.language) if term in self._place_of]
        return self._place_of[held[-1]] if held else None


@lru_cache(maxsize=256)
def _begun_by(starts: frozenset[str]) -> re.Pattern[str]:
    """Words that begin with one of these, each of one or two characters; a start of one character is a whole word."""
    whole = sorted(each for each in starts if _WORD.fullmatch(each))
    first = "|".join(re.escape(each) for each in whole if len(each) == _KEPT)
    alone = "|".join(re.escape(each) for each in whole if len(each) < _KEPT)
    # The characters are looked for first, and then the ones before them: a text has many more beginnings of words.
    return re.compile(rf"(?:{first or '(?!)'})(?<![^\W_]..)[^\W_]*|(?:{alone or '(?!)'})(?<![^\W_].)(?![^\W_])")


def spots(text: str, wanted: Question) -> Iterator[tuple[int, str]]:
    """The places of a question's terms in a text, each with its term."""
    terms = set(wanted.terms)
    known: dict[str, str | None] = {}  # a word as it is spelled, and its term in the question
    for match in _looked_for(wanted.terms).finditer(text) if terms else ():
        word = match["word"]
        if word is None:
            dense = match[0].casefold()
            yield match.start(), dense if dense in terms else "^" + dense
            continue
        if word not in known:
            held = stems(normalised(word[:MAX_TERM])[:MAX_TERM], wanted.language)
            known[word] = next((each for each in held if each in terms), None)
        term = known[word]
        if term is not None:
            yield match.start(), term


def passage(text: str, words: str, size: int) -> str:
    """About `size` characters of a text, around most of the words of a question; from the beginning of a text that
    holds none of them."""
    if len(text) <= size:
        return text
    found = list(islice(spots(text, question(words)), _MOST_SPOTS))
    first = best = 0
    most: set[str] = set()
    seen: dict[str, int] = {}  # how often each term stands between the first and the last spot of the window
    for last, (place, term) in enumerate(found):
        seen[term] = seen.get(term, 0) + 1
        while first < last and place + len(term) - found[first][0] > size:
            _, left = found[first]
            seen[left] -= 1
            if not seen[left]:
                del seen[left]
            first += 1
        if len(seen) > len(most):
            most, best = set(seen), (found[first][0] + found[last][0] + len(term)) // 2
    start = min(max(0, best - size // 2), len(text) - size)
    return text[start : start + size]


@lru_cache(maxsize=256)
def _looked_for(terms: tuple[str, ...]) -> re.Pattern[str]:
    """Words that may have one of the terms as their stem (a stem may end in other letters than its word), and terms of
    scripts without spaces."""
    dense = {term.removeprefix("^") for term in terms if is_dense(term)}
    starts = {term[: max(_KEPT, len(term) - 2)] if term.isalpha() else term for term in terms if term not in dense}
    words = "|".join(map(re.escape, sorted(starts - dense, key=len, reverse=True)))
    pairs = "|".join(map(re.escape, sorted(dense, key=len, reverse=True)))
    word = rf"(?<![^\W_])(?P<word>(?:{words})(?:[^\W_]++|[{_MARKS}]++)*)" if words else r"(?P<word>(?!))"
    return re.compile(f"{word}|(?:{pairs})" if pairs else word, re.IGNORECASE)


def is_dense(term: str) -> bool:
    """Whether a term or a prefix belongs to a script without spaces."""
    return bool(_DENSE_START.match(term.removeprefix("^")))


def _runs(text: str) -> list[tuple[str, str]]:
    """(run of a script without spaces, word of another script): one of the two is empty."""
    plain = normalised(text)
    return list(zip(repeat(""), _WORD.findall(plain))) if plain.isascii() else _RUN.findall(plain)


def _pairs(run: str) -> Iterable[str]:
    return (run[index : index + 2] for index in range(len(run) - 1))
