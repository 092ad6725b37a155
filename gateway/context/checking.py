"""Compares a model's notes with the originals: numbers, dates and times, names, negations.

Each sentence of the notes is compared with those of the originals that have most of its words. In doubt the notes stay
as they are. So it is no error if a value appears elsewhere in the originals with the same words around it, is rounded
("about"), is counted from others or in another unit, was changed right after it was said, or if the originals say
nothing about it. A wrong value becomes the one that was said; if more is wrong, the original sentence replaces the
noted one.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain, combinations
from typing import Final, NamedTuple
from unicodedata import normalize

from gateway.context.statements import sentences
from gateway.domain.message import Message, text_of
from gateway.runtime.patterns import late, table

_LONGEST: Final = 300  # characters of a sentence; a longer one is not speech
_MOST: Final = 80  # sentences that are looked at for one of the notes, those with most of its words and numbers
_READ: Final = 24  # of these, whose clauses are, and whose numbers may be counted together
_ALIKE: Final = 0.6  # of the words of a noted sentence must be in the original one
_NEAR: Final = 3  # words before and behind a value that tell what it is of
_NEIGHBOURS: Final = 3  # sentences: what is said so near is of the same matter
_ROUGHLY: Final = 0.1  # by which a rounded value may differ


def _numbered(rows: Iterable[str], first: int) -> dict[str, int]:
    return {word: number for number, row in enumerate(rows, first) for word in row.split()}


_TABLE: Final = table(__file__)
_WEEKDAY: Final = _numbered(_TABLE["weekdays"], 1)
_MONTH: Final = _numbered(_TABLE["months"], 1)
_TENS: Final = _TABLE["tens"][0].split()  # from thirty on
_COUNT: Final = (
    {"zero": 0, "null": 0} | _numbered(_TABLE["numbers"], 2) | dict(zip(_TENS, range(30, 100, 10), strict=True))
)
_NAMES_OF_MONTHS: Final = "|".join(sorted(_MONTH, key=len, reverse=True))
_VALUE: Final = late(
    r"(?P<iso>\b\d{4}-\d\d-\d\d\b)"
    r"|(?P<dots>(?:(?<=\bam )|(?<=\bab )|(?<=\bvom )|(?<=\bzum )|(?<=\bbis ))\d{1,2}\.\d{1,2}\.(?!\d)"
    r"|\b\d{1,2}\.\d{1,2}\.\d{4}\b)"
    r"|(?P<time>\b\d{1,2}:\d\d\b(?:\s?[ap]\.?m\b)?|\b\d{1,2}\s?[ap]\.?m\b)"
    rf"|(?P<day>\b\d{{1,2}}(?:st|nd|rd|th|er|\.)?\s(?:of\s|de\s)?(?:{_NAMES_OF_MONTHS})\b"
    rf"|\b(?:{_NAMES_OF_MONTHS})\s\d{{1,2}}(?:st|nd|rd|th)?\b(?![:.]?\d))"
    rf"|(?P<month>\b(?:{_NAMES_OF_MONTHS})\b)"
    rf"|(?P<weekday>\b(?:{'|'.join(_WEEKDAY)})s?\b)"
    r"|(?P<number>(?<![\w.,#/-])\d+(?:[.,' ]\d{3})*(?:[.,]\d+)?(?:\s?(?:k|thousand|million)\b)?(?![\w#/-]|[.,]\d))"
    rf"|(?P<word>\b(?:(?:twenty|{'|'.join(_TENS)})-\w+|{'|'.join(_COUNT)})\b)",
    re.IGNORECASE,
)
_TOKEN: Final = late(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_UNIT: Final = late(r"\s?([^\W\d_]+)")
_CODE: Final = late(r"(?<![\w@/~.-])(?=\S*?(?:\d|[/@_]|\w\.\w))[~./]*\w(?:[\w@/.+#:-]*\w)?")
_SPELT: Final = 3  # letters with which a translated name begins like the other
_SIGNS: Final = re.compile(r"[\W_]+")
_DIGITS: Final = re.compile(r"\d+")
_ABOUT: Final = late(_TABLE["about"], re.IGNORECASE)
_NOT: Final = late(_TABLE["not"], re.IGNORECASE)
# Negative words in what denies nothing.
_AFFIRMS: Final = late(_TABLE["affirms"], re.IGNORECASE)
_PART: Final = late(_TABLE["part"], re.IGNORECASE)
_CHANGES: Final = late(_TABLE["changes"], re.IGNORECASE)
_CLAUSE: Final = late(r"[,;]\s|\s(?:and|but|und|aber|et|mais|y|pero)\s", re.IGNORECASE)
_EMPTY: Final = frozenset(_TOKEN.findall(" ".join(_TABLE["empty"])))
_WORDS_OF_VALUES: Final = frozenset([*_WEEKDAY, *(f"{day}s" for day in _WEEKDAY), *_MONTH, *_COUNT])
_ENDINGS: Final = re.compile(r"(?:ing|ed|es|s|e|o)$")


class _Value(NamedTuple):
    """A number, date or time in a sentence. `may_be`: what it can mean. `around`: the words next to it."""

    kind: str
    may_be: frozenset[object]
    start: int
    end: int
    around: frozenset[str]

    def is_in(self, sentence: _Sentence) -> bool:
        """Whether a sentence has this value."""
        return any(each.kind == self.kind and each.may_be & self.may_be for each in sentence.values)


class _Sentence:
    """A sentence, taken apart."""

    def __init__(self, text: str, place: int = 0) -> None:
        self.text, self.place = text, place
        found = list(_VALUE.finditer(text)) if _may_have_values(text) else []
        blank = text
        for each in found:
            blank = f"{blank[: each.start()]}{' ' * len(each[0])}{blank[each.end() :]}"
        self.tokens = [(each.start(), each[0]) for each in _TOKEN.finditer(blank)]
        content = [(at, _stem(word)) for at, word in self.tokens if word.lower() not in _EMPTY]
        self.words = frozenset(word for _, word in content)
        self.values = [each for match in found for each in _read(match, content)]
        begun = {0, *(each.end() for each in re.finditer(r"[:–—-]\s", text))}
        self.names = [
            word
            for at, word in self.tokens
            if word[0].isupper() and len(word) > 2 and word.lower() not in _EMPTY and at not in begun
        ]
        self.opens = next((word for _, word in self.tokens if word.lower() not in _EMPTY), "")
        self.negative = len(_NOT.findall(_AFFIRMS.sub("", text))) % 2 == 1

    def share_in(self, other: _Sentence, without: frozenset[str] = frozenset()) -> float:
        """The share of its words that another sentence also has."""
        words = self.words - without
        return len(words & other.words) / len(words) if words else 0.0

    def clause(self, value: _Value) -> frozenset[str]:
        """Return the words of the clause in which a value stands."""
        ends = [each.start() for each in _CLAUSE.finditer(self.text)]
        start = max((each for each in ends if each <= value.start), default=0)
        end = min((each for each in ends if each >= value.end), default=len(self.text))
        return frozenset(_stem(word) for at, word in self.tokens if start <= at < end) & self.words


def _may_have_values(text: str) -> bool:
    """Whether a sentence has a digit or a number word: that takes a tenth of the time of a search."""
    return _DIGITS.search(text) is not None or not _WORDS_OF_VALUES.isdisjoint(_TOKEN.findall(text.lower()))


@lru_cache(maxsize=8_192)
def _stem(word: str) -> str:
    word = re.sub(r"['’]s?$|['’]s\b", "", word.lower())
    return (_ENDINGS.sub("", word) if len(word) > 3 else word)[:5]


def _read(match: re.Match[str], content: Sequence[tuple[int, str]]) -> Iterator[_Value]:
    before = [word for at, word in content if at < match.start()][-_NEAR:]
    behind = [word for at, word in content if at >= match.end()][:_NEAR]
    around = frozenset([*before, *behind])

    def value(kind: str, *may_be: object) -> _Value:
        return _Value(kind, frozenset(may_be), match.start(), match.end(), around)

    text, kind = match[0].lower(), match.lastgroup
    digits = [int(each) for each in _DIGITS.findall(text)]
    if kind == "iso":
        yield value("day", (digits[1], digits[2]))
        yield value("number", float(digits[0]))
    elif kind == "dots":
        yield value("day", (digits[1], digits[0]))
    elif kind == "time":
        hour = digits[0] % 12 + 12 * ("p" in text) if "m" in text else digits[0]
        yield value("time", hour * 60 + (digits[1] if len(digits) > 1 else 0))
    elif kind == "day":
        named = next(_MONTH[word] for word in _TOKEN.findall(text) if word in _MONTH)
        yield value("day", (named, digits[0]))
    elif kind == "month":
        yield value("month", _MONTH[text])
    elif kind == "weekday":
        yield value("weekday", _WEEKDAY[text] if text in _WEEKDAY else _WEEKDAY[text.removesuffix("s")])
    elif kind == "word":
        tens, _, ones = text.partition("-")
        if not ones or ones in _COUNT or ones == "one":
            yield value("number", float(_COUNT[tens] + (_COUNT.get(ones, 1) if ones else 0)))
    else:
        yield value("number", *_readings(text))


def _readings(text: str) -> Iterator[float]:
    """The numbers that digits may mean: a mark before three digits groups them, or is the decimal mark."""
    factor = 1_000_000.0 if "million" in text else 1_000.0 if re.search(r"k|thousand", text) else 1.0
    digits = re.sub(r"[^\d.,]", "", text)
    plain, decimal = re.sub(r"[.,]", "", digits), re.sub(r"[.,](?=\d*[.,])", "", digits).replace(",", ".")
    if not re.search(r"[.,]\d{1,2}$|[.,]\d{4,}$", digits):
        yield float(plain) * factor
    if "." in decimal:
        yield float(decimal) * factor


def checked(notes: str, originals: Iterable[Message], previous: str) -> tuple[str, list[str]]:
    """A model's notes without what contradicts the originals and the earlier notes, and each correction as a
    sentence."""
    lines = [line for line in notes.split("\n") if not line.startswith("#")]
    bare = {text.lstrip("-*• \t") for line in lines for text in sentences(line)}
    texts = [previous, *(text_of(each) for each in originals if isinstance(each, Mapping))]
    lines = [each.strip("-*• \t") for text in texts for each in sentences(text)]
    own = bare.difference(lines)  # what stands there word for word is right
    noted = [_Sentence(each) for each in sorted(own, key=notes.index) if 0 < len(each) <= _LONGEST]
    if not noted:
        return notes, []
    said = _Said(lines, frozenset(word for each in noted for word in (*each.words, *_DIGITS.findall(each.text))))
    corrections = []
    for each in noted:
        if (better := said.mended(each)) is not None:
            notes = notes.replace(each.text, better, 1)
            corrections.append(f"“{each.text}” became {better if better[0] == '“' else f'“{better}”'}")
    return notes, corrections


class _Said:
    """The sentences of the originals, by those of their words that the notes also have. Each is taken apart when
    needed."""

    def __init__(self, lines: Sequence[str], words: frozenset[str]) -> None:
        self._texts = [each for each in lines if 0 < len(each) <= _LONGEST]
        self._long = "\n".join(each for each in lines if len(each) > _LONGEST)
        self._lines = lines
        self._known: dict[int, _Sentence] = {}
        self._by_word: Mapping[str, list[int]] = defaultdict(list)
        for place, text in enumerate(self._texts):
            for word in words.intersection(chain(map(_stem, _TOKEN.findall(text)), _DIGITS.findall(text))):
                self._by_word[word].append(place)

    @cached_property
    def _plain(self) -> str:
        return _plain("\n".join(self._lines))

    def _holding(self, words: Iterable[str]) -> Counter[int]:
        """Count for each sentence how many of the words it has."""
        return Counter(chain.from_iterable(self._by_word.get(word, ()) for word in words))

    def _sentence(self, place: int) -> _Sentence:
        if place not in self._known:
            self._known[place] = _Sentence(self._texts[place], place)
        return self._known[place]

    def mended(self, noted: _Sentence) -> str | None:
        """What should replace a noted sentence; None if nothing speaks against it."""
        shared, numbers = self._holding(noted.words), self._holding({*_DIGITS.findall(noted.text)})
        # Values are compared with what has most of the words, names and negations with what has all or all but one.
        least = min(_ALIKE * len(noted.words), len(noted.words) - 1) if noted.values else len(noted.words) - 1
        if max(shared.values(), default=0) < least:
            return None
        half = [place for place, count in shared.items() if 2 * count >= len(noted.words)]
        half.sort(key=lambda place: (-shared[place], -numbers[place], place))
        alike = [self._sentence(place) for place in half[:_MOST]]
        known = frozenset(word for word in noted.words if word in self._by_word)
        return (
            self._values(noted, alike)
            or self._code(noted, alike)
            or self._names(noted, alike, known)
            or self._negation(noted, alike)
        )

    def _values(self, noted: _Sentence, alike: Sequence[_Sentence]) -> str | None:
        """Correct values that differ from what was said with the same words around it."""
        wrong: dict[_Value, tuple[_Sentence, _Value]] = {}
        same = [each for each in alike if _names_in_order(noted, each)] if noted.values else []
        if any(noted.share_in(each) >= _ALIKE and _in_order_of(noted.values, each.values) for each in same):
            return None
        for value in noted.values:
            best, found = _best(value, noted, same)
            if best is None or found is None or value.may_be & found.may_be or _is_rounded(value, found, noted.text):
                continue
            text = noted.text[value.start : value.end]
            if value.is_in(best):  # two changed places, or it is of something else in the same sentence
                if found.is_in(noted) and not _is_in_its_clause(value, found, noted, best):
                    wrong[value] = best, found
            elif not (
                found.is_in(noted)
                or _is_counted(value, [*self._around(best), *alike[:_READ]])
                or _has_another_unit(value, noted, best)
                or self._is_said(value, text, best, alike)
                or self._is_changed(best)
            ):
                wrong[value] = best, found
        return _mended(noted, wrong)

    def _is_said(self, value: _Value, text: str, near: _Sentence, alike: Sequence[_Sentence]) -> bool:
        """Whether a value, noted as `text`, appears near a sentence, or anywhere with words around it."""
        if text in self._long or any(map(value.is_in, self._around(near))):
            return True
        found = (each for one in alike for each in one.values if each.kind == value.kind)
        return any(each.around & value.around and each.may_be & value.may_be for each in found)

    def _negation(self, noted: _Sentence, alike: Sequence[_Sentence]) -> str | None:
        """Correct a sentence that says the opposite."""
        if len(noted.words) + len(noted.values) < 2:
            return None
        near = [each for each in alike if noted.share_in(each) == 1.0][:_READ]
        clauses = [(each, _Sentence(part)) for each in near for part in _CLAUSE.split(each.text)]
        same = [
            (whole, part)
            for whole, part in clauses
            if noted.share_in(part) == 1.0 and all(value.is_in(part) for value in noted.values)
        ]
        said = [whole for whole, part in same if part.share_in(noted) >= _ALIKE and not whole.text.endswith("?")]
        if not said or any(part.negative == noted.negative or self._is_changed(whole) for whole, part in same):
            return None
        return _quoted(said[0])

    def _is_spelt_so(self, name: str, said: str) -> bool:
        """Whether a name may be another spelling of one that was said, or stands in a long line."""
        return _plain(name)[:_SPELT] == _plain(said)[:_SPELT] or name in self._long

    def _code(self, noted: _Sentence, alike: Sequence[_Sentence]) -> str | None:
        """Correct a code that nobody said: where it stands, another of its form was said."""
        for code in _codes(noted.text):
            if _plain(code).removeprefix("v") in self._plain:
                continue
            rest = frozenset(map(_stem, _TOKEN.findall(code)))
            for each in alike[:_READ]:
                left = [one for one in _codes(each.text) if _shape(one) == _shape(code) and one not in noted.text]
                if len(left) == 1 and each.words - rest and noted.share_in(each, rest) >= _ALIKE:
                    return noted.text.replace(code, left[0], 1)
        return None

    def _around(self, said: _Sentence) -> list[_Sentence]:
        """A sentence with its neighbours."""
        first, last = max(0, said.place - _NEIGHBOURS), min(len(self._texts), said.place + _NEIGHBOURS + 1)
        return [self._sentence(place) for place in range(first, last)]

    def _is_changed(self, said: _Sentence) -> bool:
        """Whether a value is changed there, or right after it; such a value may be missing from the notes."""
        behind = self._texts[said.place + 1 : said.place + 1 + _NEIGHBOURS]
        return _PART.search(said.text) is not None or any(map(_CHANGES.search, behind))

    def _takes_over(self, name: str, said: _Sentence) -> bool:
        """Whether a name comes up right after a sentence."""
        return any(name in text for text in self._texts[said.place + 1 : said.place + 1 + _NEIGHBOURS])

    def _names(self, noted: _Sentence, alike: Sequence[_Sentence], known: frozenset[str]) -> str | None:
        """Correct names: one in the place of another, or two that were swapped. One that is not `known` from elsewhere
        may be a translation."""
        mine = [*noted.names, *([noted.opens] if noted.opens[:1].isupper() else [])]
        for sentence in alike:
            theirs = [*sentence.names, *([sentence.opens] if sentence.opens[:1].isupper() else [])]
            shared = [name for name in dict.fromkeys(_in_order(noted, mine)) if name in theirs]
            if len(shared) == 2 and _reversed(noted, sentence, shared):
                as_noted = _in_order(noted, shared)[:2]
                so = (each for each in alike if noted.share_in(each) == 1.0)
                return None if any(_in_order(each, shared)[:2] == as_noted for each in so) else _quoted(sentence)
            strange = [name for name in mine if _stem(name) not in sentence.words]
            left = [name for name in theirs if _stem(name) not in noted.words]
            if len(strange) != 1 or len(left) != 1 or len(strange[0]) < 3 or len(left[0]) < 3:
                continue
            (name,), (said,) = strange, left
            rest = frozenset([_stem(name)])
            both = len(noted.words - rest) >= 2 and noted.share_in(sentence, rest) >= 1.0
            is_own = any(_stem(name) in each.words and noted.share_in(each, rest) >= 0.5 for each in alike)
            if (
                both
                and (_stem(name) in known or not self._is_spelt_so(name, said))
                and f"{name}:" not in noted.text
                and not is_own
                and not self._takes_over(name, sentence)
                and sentence.share_in(noted, frozenset([_stem(said)])) >= _ALIKE
            ):
                return noted.text.replace(name, said, 1)
        return None


def _plain(text: str) -> str:
    """The letters and digits of a text, without accents, in lower case."""
    return _SIGNS.sub("", normalize("NFKD", text.lower()))


def _codes(text: str) -> list[str]:
    """The codes, paths and addresses in a sentence: words with a digit in them that are no values, and those with a
    mark inside that joins no ordinary words."""
    values = {place for each in _VALUE.finditer(text) for place in range(*each.span())}
    return [
        each[0]
        for each in _CODE.finditer(text)
        if not values.issuperset(range(*each.span())) and not _EMPTY.issuperset(re.split(r"\W", each[0].lower()))
    ]  # "and/or" is no path


def _shape(code: str) -> str:
    return re.sub(r"\d+", "9", re.sub(r"[^\W\d_]+", "a", code))


def _in_order_of(values: Iterable[_Value], said: Iterable[_Value]) -> bool:
    """Whether all values are among those that were said, in the same order."""
    left = iter(said)
    return all(any(each.kind == value.kind and each.may_be & value.may_be for each in left) for value in values)


def _mended(noted: _Sentence, wrong: Mapping[_Value, tuple[_Sentence, _Value]]) -> str | None:
    if not wrong:
        return None
    if len(wrong) > 1:
        return _quoted(next(iter(wrong.values()))[0])
    ((value, (best, found)),) = wrong.items()
    if value.is_in(best):
        return _quoted(best)
    return f"{noted.text[: value.start]}{best.text[found.start : found.end]}{noted.text[value.end :]}"


def _best(value: _Value, noted: _Sentence, alike: Sequence[_Sentence]) -> tuple[_Sentence | None, _Value | None]:
    """The value of its kind with the most of the words around it; the same value first."""
    best: tuple[float, bool, _Sentence, _Value] | None = None
    for sentence in alike:
        for each in sentence.values:
            shared = len(each.around & value.around)
            if each.kind != value.kind or not shared:
                continue
            told = len(noted.words) > 1 or value.kind != "number"  # a number beside one word may be of anything
            enough = shared >= 2 or (told and noted.share_in(sentence) == 1.0)
            rank = (shared, bool(each.may_be & value.may_be))
            if enough and noted.share_in(sentence) >= _ALIKE and (best is None or rank > best[:2]):
                best = (*rank, sentence, each)
    return (best[2], best[3]) if best else (None, None)


def _is_rounded(value: _Value, said: _Value, text: str) -> bool:
    numbers = [(a, b) for a in value.may_be for b in said.may_be if isinstance(a, float) and isinstance(b, float)]
    near = any(abs(a - b) <= _ROUGHLY * max(a, b) for a, b in numbers)
    return near and _ABOUT.search(text[: value.start]) is not None


def _is_counted(value: _Value, said: Sequence[_Sentence]) -> bool:
    """Whether a number is the sum, difference or product of two that were said, or the sum of all in a sentence."""
    of_each = [[each for value in one.values for each in value.may_be if isinstance(each, float)] for one in said]
    pairs = combinations(dict.fromkeys(chain.from_iterable(of_each)), 2)
    made = [*map(sum, of_each), *(each for a, b in pairs for each in (a + b, abs(a - b), a * b))]
    return any(isinstance(a, float) and any(abs(a - each) < 0.005 for each in made) for a in value.may_be)


def _has_another_unit(value: _Value, noted: _Sentence, said: _Sentence) -> bool:
    """Whether the word right after a number is not in a sentence."""
    unit = _UNIT.match(noted.text, value.end)
    return (
        value.kind == "number"
        and unit is not None
        and unit[1].lower() not in _EMPTY
        and _stem(unit[1]) not in said.words
    )


def _is_in_its_clause(value: _Value, found: _Value, noted: _Sentence, said: _Sentence) -> bool:
    """Whether a value has the words of its clause around it where it was said, as much as the other value has in its
    clause."""
    own = next(each for each in said.values if each.kind == value.kind and each.may_be & value.may_be)
    mine, of_own, of_found = noted.clause(value), said.clause(own), said.clause(found)
    return of_own != of_found and len(mine & of_own) >= len(mine & of_found)


def _in_order(sentence: _Sentence, names: Sequence[str]) -> list[str]:
    return [word for _, word in sentence.tokens if word in names]


def _names_in_order(one: _Sentence, other: _Sentence) -> bool:
    """Whether the names that two sentences share have one order: from Rome to Oslo is not from Oslo to Rome."""
    names = [name for name in one.names if name in other.names]
    return len(names) < 2 or _in_order(one, names) == _in_order(other, names)


def _reversed(noted: _Sentence, said: _Sentence, names: Sequence[str]) -> bool:
    """Whether two names were swapped in a sentence that otherwise has the same words, in the same voice."""
    one, other = ([word.lower() for _, word in each.tokens] for each in (noted, said))
    first, second = _in_order(noted, names)[:2], _in_order(said, names)[:2]
    if first != second[::-1] or len(set(first)) != 2 or sorted(one) != sorted(other):
        return False
    clauses = [{part.strip(" .") for part in _CLAUSE.split(each.text)} for each in (noted, said)]
    return clauses[0] != clauses[1] and all(value.is_in(said) for value in noted.values)


def _quoted(sentence: _Sentence) -> str:
    return f"“{sentence.text}”"
