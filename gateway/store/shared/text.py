"""Cuts text into search terms, the same for every store.

Words lie between spaces and punctuation, and are case-folded. Scripts that are written without
spaces (Chinese, Japanese, Korean, Thai…) have no such words: a run of their characters becomes its
overlapping pairs, and its last character alone. So every character begins some term: any two
adjacent characters are a term, and one character is found as a prefix.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_MOST_SPOTS: Final = 64  # the longest of the terms: each is tried at every character of a text
MAX_TERM: Final = 64  # characters; a search finds a longer word (base64, a hash) by its beginning

# Thai, Lao, Myanmar, Hangul jamo, Khmer; kana, bopomofo; Han; Hangul; Han of the other planes.
_DENSE: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff"
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u318f\u31a0-\u31bf\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
# Vowel signs and points that belong to a word although they are not letters to `\w`.
_MARKS: Final = "\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff"
_DENSE_START: Final = re.compile(f"[{_DENSE}]")
_RUN: Final = re.compile(f"([{_DENSE}]+)|((?:[^\\W_{_DENSE}]|[{_MARKS}])+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A search as conditions: a text must hold every term, a term that starts with each prefix, and every run as the
    run stands (terms alone would accept the pairs of a run scattered)."""

    terms: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.terms or self.prefixes)


def normalised(text: str) -> str:
    """The form in which texts are compared: compatibility forms (full-width letters) and case folded."""
    return unicodedata.normalize("NFKC", text).casefold()


def terms(text: str) -> list[str]:
    """The distinct search terms of a text, in the order they first appear."""
    found: dict[str, None] = {}
    for run in _RUN.finditer(normalised(text)):
        dense, word = run.groups()
        if word is not None:
            found[word[:MAX_TERM]] = None
        else:
            found.update(dict.fromkeys(_pairs(dense)))
            found[dense[-1]] = None
    return list(found)


def query(words: str) -> Query:
    """The conditions of a search for `words`; false if the words make none."""
    needed: dict[str, None] = {}
    prefixes: dict[str, None] = {}
    runs: dict[str, None] = {}
    for run in _RUN.finditer(normalised(words)):
        dense, word = run.groups()
        if word is not None:
            needed[word[:MAX_TERM]] = None
        elif len(dense) == 1:
            prefixes[dense] = None
        else:
            needed.update(dict.fromkeys(_pairs(dense)))
            if len(dense) > 2:
                runs[dense] = None
    return Query(terms=tuple(needed), prefixes=tuple(prefixes), runs=tuple(runs))


def holds_runs(text: str, wanted: Query) -> bool:
    """Whether a text that has all the terms also has the runs that the terms came from."""
    if not wanted.runs:
        return True
    plain = normalised(text)
    return all(run in plain for run in wanted.runs)


def passage(text: str, words: str, size: int) -> str:
    """About `size` characters of a text, around most of the terms of a search for `words`; from the beginning of a
    text that holds no term in the same letters."""
    if len(text) <= size:
        return text
    spots = list(_spots(text, query(words)))
    first = best = 0
    most: set[str] = set()
    seen: dict[str, int] = {}  # how often each term stands between the first and the last spot of the window
    for last, (place, term) in enumerate(spots):
        seen[term] = seen.get(term, 0) + 1
        while first < last and place + len(term) - spots[first][0] > size:
            _, left = spots[first]
            seen[left] -= 1
            if not seen[left]:
                del seen[left]
            first += 1
        if len(seen) > len(most):
            most, best = set(seen), (spots[first][0] + spots[last][0] + len(term)) // 2
    start = min(max(0, best - size // 2), len(text) - size)
    return text[start : start + size]


def _spots(text: str, wanted: Query) -> Iterator[tuple[int, str]]:
    """The places of a search's terms in a text, each with the term as the text spells it."""
    looked_for = sorted({*wanted.terms, *wanted.prefixes, *wanted.runs}, key=len, reverse=True)[:_MOST_SPOTS]
    if looked_for:
        words = "|".join(
            re.escape(each) if _DENSE_START.match(each) else rf"(?<![^\W_]){re.escape(each)}" for each in looked_for
        )
        for found in re.finditer(words, text, re.IGNORECASE):
            yield found.start(), found[0].casefold()


def _pairs(run: str) -> Iterable[str]:
    return (run[index : index + 2] for index in range(len(run) - 1))
