"""Days behind sayings: of two that may be about the same thing, each line of the notes says when it was said.

Nobody decides whether the newer one replaces the older one. A day too many does no harm, and the reader of a line with
a day knows which one to believe."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, NamedTuple

from gateway.context.statements import DENSE
from gateway.runtime.patterns import late, table, words

_TABLE: Final = table(__file__)
_COMMON: Final = 6  # sayings that may share a word which still tells what they are about
# Words that may name what a sentence is about: the first one, those behind an article, and names.
_ARTICLE: Final = _TABLE["article"][0]
_SUBJECT: Final = re.compile(
    rf"(?:\A\W*(?:{_ARTICLE}\s)?|\b{_ARTICLE}\s|\b[ld]['’])([^\W\d_][\w’'-]{{2,}})"
    r"|(?<=[^\W\d_,]\s)([A-ZÀ-ÞА-Я][\w’-]{2,})|((?=[A-Za-z_-]*\d)(?=\d*[A-Za-z])[A-Za-z0-9_-]{3,}|[A-Za-z]{2,}-[a-z-]{2,})"
)
# At the beginning of a sentence.
_FIRST: Final = re.compile(r"(?:[我你您他她它咱这那们的]|[昨今明][天晚早年]|现在|\w{1,3}[之以]后)+")
_PARTICLE: Final = re.compile("[我你您他她它咱这那们的是了在把从到]")  # in a pair of characters that tells of nothing
_LATIN: Final = re.compile(r"[a-zß-ɏ]+(?!['’](?:m|ve|d|ll|re)\b)[\w’'-]*$")  # other scripts may begin with the verb
_SAYS_NOTHING: Final = words(_TABLE["says_nothing"])
_INTRODUCES: Final = re.compile(r"\b(?i:my name|mein name|mi nombre|mon nom)\b|我(?:叫|是(?=[A-Z]))|名是")
_DENSE: Final = late(rf"{DENSE.pattern}+")
_LEAST: Final = 2  # letters of such a word
_ENOUGH: Final = 2  # other words that few sayings have, shared by two that may be about the same
_ALIKE: Final = 0.6  # of the words of a saying are in a line that repeats it
_WHOSE: Final = re.compile(r"['’]s\b")
_WORD: Final = re.compile(r"[^\W_]+(?:[-.,:_'’/][^\W_]+)*")
_MARK: Final = re.compile(r" \(\d{1,2} [A-Z][a-z]{2}(?: \d{4})?(?:, \d\d:\d\d)?\)$")


class Told(NamedTuple):
    """The words of a saying, those that may name what it is about, and when it was said, in seconds since the epoch;
    0.0 if unknown."""

    words: frozenset[str]
    about: frozenset[str]
    at: float

    @classmethod
    def of(cls, text: str, at: float) -> Told:
        """A sentence, taken apart. An introduction is about nothing: a name in it is what it tells."""
        if _INTRODUCES.search(text):
            return cls(frozenset(), frozenset(), at)
        words = telling(text)
        about = {
            word.lower().removesuffix("'s").removesuffix("’s") for found in _SUBJECT.findall(text) for word in found
        }
        dense = (word for word in words if DENSE.search(word) and not _PARTICLE.search(word))
        return cls(words, frozenset([*about, *dense]) - _SAYS_NOTHING - {""}, at)


class _Dated(NamedTuple):
    """A saying with its day. `own`: its words that the last saying about the thing lacks. `later`: what it lacks
    itself of that."""

    words: frozenset[str]
    own: frozenset[str]
    later: frozenset[str]
    at: float


class Days:
    """Says days as they stand in notes whose newest message is of `newest`: a day of that year goes without it."""

    def __init__(self, newest: float) -> None:
        self._year = time_of(newest).year

    def of(self, at: float) -> str:
        """A day: "3 May", or "3 May 2025"."""
        when = time_of(at)
        return f"{when.day} {when:%b}" if when.year == self._year else f"{when.day} {when:%b %Y}"

    def pair(self, later: float, before: float) -> tuple[str, str]:
        """Two days; if they are the same, the first with its time, and only the time of the other."""
        one, other = self.of(later), self.of(before)
        if one != other:
            return one, other
        return f"{one}, {time_of(later):%H:%M}", f"{time_of(before):%H:%M}"


def time_of(at: float) -> datetime:
    """A time in UTC; the beginning of the epoch for what is none, because an import may say anything."""
    with suppress(ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(at, UTC)
    return datetime.fromtimestamp(0, UTC)


def telling(text: str) -> frozenset[str]:
    """The words of a text; pairs of characters where it is written without spaces."""
    words = set[str]()
    for run in _WORD.findall(_WHOSE.sub("", text.lower())):
        dense = _DENSE.findall(run)
        words.update(part[place : place + 2] for part in dense for place in range(len(part) - 1))
        words.update(_DENSE.sub(" ", run).split() if dense else [run])
    return frozenset(words)


def subject(text: str) -> str:
    """The word with which a sentence says what it is about, if it begins with that; "" if it does not."""
    if _INTRODUCES.search(text):
        return ""
    if dense := DENSE.search(text):
        said = _FIRST.sub("", text[dense.start() :])
        return said[:2] if dense.start() < 2 and all(map(DENSE.match, said[:3])) else ""
    found = _SUBJECT.match(text)
    named = found is not None and text[found.end() : found.end() + 1] == " "  # "Thanks, …" names nothing
    word = (found[1] or found[3] or "").lower() if found and named else ""
    return "" if word in _SAYS_NOTHING or not _LATIN.match(word) else word


def related(told: Sequence[Told]) -> list[list[int]]:
    """For each saying, the places of the others that may be about the same: both have a word for it that few have, or
    two other such words."""
    named, having = defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)
    for place, each in enumerate(told):
        for word in each.about:
            named[word].append(place)
        for word in each.words:
            if not _PARTICLE.search(word):
                having[word].append(place)
    found = [Counter[int]() for _ in told]
    for rows, weight in ((named, _ENOUGH), (having, 1)):
        for word, places in rows.items():
            for place in places if len(places) <= _COMMON and len(word) >= _LEAST else ():
                found[place].update(dict.fromkeys(places, weight))
    return [
        sorted(other for other, count in counts.items() if count >= _ENOUGH and other != place)
        for place, counts in enumerate(found)
    ]


class Dating:
    """Puts days behind lines of notes. `threads`: sayings that may be about one thing, oldest first."""

    def __init__(self, threads: Iterable[Sequence[Told]], days: Days) -> None:
        self._days = days
        self._by_word: dict[str, list[_Dated]] = defaultdict(list)
        for thread in threads:
            last = thread[-1].words
            for told in thread:
                rest = last if told is not thread[-1] else thread[0].words
                dated = _Dated(told.words, told.words - rest, last - told.words, told.at)
                for word in dated.own or dated.words:
                    self._by_word[word].append(dated)

    @staticmethod
    def unmarked(line: str) -> str:
        """A line of notes without the day at its end."""
        return _MARK.sub("", line)

    def marked(self, notes: str) -> str:
        """Notes in which each line that repeats a saying has its day at its end."""
        if not self._by_word:
            return notes
        return "\n".join(map(self._marked, notes.split("\n")))

    def _marked(self, line: str) -> str:
        bare = _MARK.sub("", line)
        found = self._said(telling(bare))
        return f"{bare} ({self._days.of(found.at)})" if found else line

    def _said(self, words: frozenset[str]) -> _Dated | None:
        """The saying that a line with these words repeats; of several that it repeats as much, the newest."""
        best, most = None, (0.0, False, 0.0)
        for dated in {id(each): each for word in words for each in self._by_word.get(word, ())}.values():
            shared = dated.words & words
            valued = len(shared) > 1 and any(any(map(str.isdigit, word)) for word in dated.own & words)
            former = bool(dated.later) and not dated.later <= words  # and what the line says of other things is newer
            rank = len(shared) / len(dated.words), former, dated.at
            if (rank[0] >= _ALIKE or valued) and rank >= most:
                best, most = dated, rank
        return best
