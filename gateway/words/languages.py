"""Words as a search compares them: their stems, and the words that say nothing about a subject.

The stems are Snowball's (https://snowballstem.org). The stop lists are our own. A text's language is the one whose
stop words the text uses most; English, if none stands out. A word of a script that has no stemmer is its own stem.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from types import MappingProxyType
from typing import Final

import Stemmer

from gateway.runtime.patterns import table, words

ENGLISH: Final = "english"
_FEWEST: Final = 2  # stop words of another language than English, before a text is taken for that language

_WORDS: Final = {name: words(lines) for name, lines in table(__file__).items()}
_PAIRS: Final = _WORDS.pop("pairs")
_STOPS: Final = MappingProxyType(_WORDS)
_CYRILLIC: Final = range(0x0400, 0x0530)
_LATIN_END: Final = 0x0250


def language_of(words: Iterable[str]) -> str:
    """The language of case-folded words, by the stop words among them."""
    counts = dict.fromkeys(_STOPS, 0)
    for word in words:
        for name in _languages_of(word):
            counts[name] += 1
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] >= max(_FEWEST, counts[ENGLISH] + 1) else ENGLISH


def is_stop(word: str, language: str = "") -> bool:
    """Whether a case-folded word, or a pair of a dense script, says nothing about a subject in any language. With a
    `language`: in that one or in English."""
    if language:
        return word in _STOPS[language] or word in _STOPS[ENGLISH]
    return word in _PAIRS or bool(_languages_of(word))


@lru_cache(maxsize=50_000)
def stems(word: str, language: str) -> tuple[str, ...]:
    """The stems under which a case-folded word is entered and looked for, without accents: that of `language` and that
    of English, because the language of a short question may not be seen. A word with a digit in it stays as it is. A
    word's script decides first: a Russian text may hold English words."""
    if any(map(str.isdigit, word)):
        return (word,)
    first = ord(word[0])
    if first in _CYRILLIC:
        return (_stem(word, "russian"),)
    if first >= _LATIN_END or language in ("russian", ENGLISH):
        return (_stem(word, ENGLISH),)
    return tuple(dict.fromkeys((_stem(word, language), _stem(word, ENGLISH))))


@lru_cache(maxsize=50_000)
def _languages_of(word: str) -> tuple[str, ...]:
    return tuple(name for name, words in _STOPS.items() if word in words)


def _stem(word: str, language: str) -> str:
    # A stemmer works in fields of its own, and two threads stem: each word gets a stemmer.
    plain = unicodedata.normalize("NFD", Stemmer.Stemmer(language, 0).stemWord(word))
    bare = "".join(each for each in plain if not unicodedata.combining(each)) if ord(plain[0]) < _LATIN_END else plain
    return unicodedata.normalize("NFC", bare) or word
