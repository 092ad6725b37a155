"""Identifiers: values that a reader of a summary cannot guess and must be told letter by letter.

They are paths, addresses, numbers with units, ids, codes that are called codes, days, quoted names and error codes.
They are found once, when a message is stored (`found`, kept in the host's note). The module `ledger` ranks them when
the message leaves view.

A text may be a megabyte of anything, so only the edges of a long text are read and every repeat is bounded or
possessive. One cheap pattern cuts out words, which are then told apart one by one. Words end where ASCII ends,
because Chinese has no spaces around a path.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from operator import itemgetter
from typing import Any, Final

from gateway.context.readable import calls_of
from gateway.domain.message import HOST, ends, note_of, said_in
from gateway.runtime.patterns import late, table, words

MOST: Final = 32  # identifiers of one message
LONGEST: Final = 160  # characters of one
SERIES: Final = 11  # more of one form in one message are rows of a table, and no row matters by itself
EDGE: Final = 6_000  # characters that are read at either end of a longer text

_RUN: Final = re.compile(r"[A-Za-z0-9_./:@#%~+\\=&?$€£¥-]{2,}+")
_TABLE: Final = table(__file__)
_MEASURE: Final = late(_TABLE["measure"])
_CALLED: Final = _TABLE["called"]
# A search for one of some characters is much faster than one for some words, so their first letters stand apart.
_CODE: Final = re.compile(
    rf"[{''.join(sorted({case for word in _CALLED for case in (word[0].lower(), word[0].upper())}))}](?<![A-Za-z].)"
    rf"(?i:{'|'.join(f'(?<={word[0]}){word[1:]}' for word in _CALLED)})\s?[#:=]?\s?#?\d{{1,12}}(?![\w.]*\d)"
)
# A value under a JSON key; and the last words of keys whose values are codes, however short these are.
_FIELD: Final = re.compile(r"\"\s{0,2}:\s{0,2}\"?([#A-Za-z0-9][A-Za-z0-9#_-]{1,31})(?![^\s\",\]}])")
_FIELD_NAME: Final = 40  # characters
_CODED: Final = words(_TABLE["coded"])
# Keys of codes that everybody knows.
_UNCODED: Final = words(_TABLE["uncoded"])
_PLACES: Final = frozenset({"zip", "postal", "postcode", "line", "page", "row", "index"})
_FIELD_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# Capital letters alone are a code only behind a word that says so; some words are shouted there, too.
_CAPITALS: Final = re.compile(
    r"[A-Z](?<![A-Za-z0-9_./:@#-][A-Z])[A-Z]{4,7}(?![A-Za-z0-9_/:@#])(?!-[A-Za-z0-9])(?!\.[A-Za-z0-9])"
)
_NAMING: Final = late(_TABLE["naming"])
_NAMING_NEAR: Final = 64  # characters before a code, or behind it, in which it is named
_SHOUTED: Final = words(_TABLE["shouted"])
_MONTHS, GERMAN_MONTHS, _OTHER_MONTHS = (_TABLE[name][0] for name in ("months", "german_months", "other_months"))
_YEAR: Final = r"(?:,? (?:de |del )?\d{4}(?!\d))?"
# Most numbers are no days, and a look at their neighbours is much faster than the pattern of all days.
_BEFORE_DAY: Final = re.compile(r"(?:J(?:an|un|ul)|Feb|Ma[ry]|A(?:pr|ug)|Sep|Oct|Nov|Dec)[a-z]{0,6}\.? (?:the )?\d")
_BEHIND_DAY: Final = re.compile(r"\d(?:st|nd|rd|th|er|\.)? ?(?:of |de |di )?([^\W\d_]{3})")
_DAY_BY_NUMBERS: Final = re.compile(r"\d[./]\d{1,2}[./]|\d[月월]")
_MONTH: Final = frozenset(re.findall(r"(?<![^\W\d_])[^\W\d_]{3}", f"{_MONTHS} {GERMAN_MONTHS} {_OTHER_MONTHS}"))
_DAY: Final = late(
    rf"(?<![A-Za-z0-9_.,/:-])(?:{_MONTHS} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?![\w:%])(?![.,]\d){_YEAR}"
    rf"|\d{{1,2}}(?:(?:st|nd|rd|th)?(?: of)? {_MONTHS}|\. ?{GERMAN_MONTHS}|(?:er)?(?: de| di)? {_OTHER_MONTHS})(?!\w)"
    rf"{_YEAR}"
    r"|(?:\d{4}年)?\d{1,2}月\d{1,2}[日号號]|(?:\d{4}년 ?)?\d{1,2}월 ?\d{1,2}일"
    r"|\d{1,2}/\d{1,2}/(?:\d{4}|\d{2})(?![\d/])|\d{1,2}\.\d{1,2}\.(?![\d.]))"
)
# Numbers that people write in groups: phones, accounts, plates of cars.
_GROUPED: Final = re.compile(
    r"(?<![\w.,/:+-])(?:"
    r"(?:\+|\(?0)\d{1,5}\)?(?:[ ./-]{1,2}(?:\(0\))?\(?\d{1,8}\)?){1,6}|\(?[2-9]\d{2}[)./ -]{1,2}\d{3}[./ -]\d{4}"
    r"|[A-Z]{2}\d{2}(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?"
    r"|[A-Z]{1,3}-[A-Z]{1,2} \d{1,4}[EH]?|[A-Z]{2}\d{2} [A-Z]{3}"
    r")(?![\w%]|[.,:/-]\d)"
)
_DATED: Final = re.compile(r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}")
_CERTAINLY: Final = frozenset({"100%", "100 %"})  # people say so who are sure
_LEAST_DIGITS: Final = 7  # of a phone number that begins with 0 or +
_QUOTED: Final = re.compile(
    r"`([^`\n]{2,80})`|“([^”\n]{2,60})”|«([^»\n]{2,60})»|「([^」\n]{2,60})」|『([^』\n]{2,60})』|《([^》\n]{2,60})》"
    r"|\"(?<![\w\"]\")(?<!\":\")(?<!\": \")([^\"\n]{2,60})\"(?!\s{0,3}:)|'(?<![\w']')([^'\n]{2,60})'(?!\w)"
)
_FOREIGN_PATH: Final = re.compile(
    r"(?<![A-Za-z0-9_./~-])(?:~|\.{1,2})?/(?:[\w-]{1,60}/){0,10}[\w-]{1,60}\.[A-Za-z0-9]{1,6}(?![A-Za-z0-9])"
)
_ERRNO: Final = re.compile(_TABLE["errno"][0])
_EXCEPTION: Final = re.compile(r"[A-Z][A-Za-z]{2,60}(?:Error|Exception|Warning)")
_EMAIL: Final = re.compile(r"[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,6}")
_MENTION: Final = re.compile(r"@[A-Za-z]\w{2,31}(?:/[\w.-]{1,60})?")
_HEX: Final = re.compile(r"(?:0x[0-9a-fA-F]{2,16}|[0-9a-f]{7,64}|[0-9A-F]{7,64})")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NUMBER: Final = re.compile(
    r"#\d{1,12}|\d{5,20}|\d{1,8}(?:-\d{1,8}){2,4}|v?\d{1,5}(?:\.\d{1,5}){2,3}(?:[-+][\w.]{1,20})?(?::\d{1,5})?|v\d{1,4}"
)
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?:T[\d:.+Z-]{4,24})?")
_TIME: Final = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?")
_MIXED: Final = re.compile(r"[A-Za-z0-9_#][\w.:#+-]{2,80}")
_ORDINAL: Final = re.compile(r"\d{1,4}(?:st|nd|rd|th)|\d[\d.]*[a-z]")
_NAME: Final = re.compile(r"[A-Za-z]\w{0,60}_\w{1,60}|_{1,2}[A-Za-z]\w{1,60}(?<!_)|__[a-z]\w{1,60}__")
_CAMEL: Final = re.compile(r"(?=[A-Za-z0-9]*(?:[a-z0-9][A-Z]|[A-Z]{2}[a-z]{2}))[A-Za-z][A-Za-z0-9]{3,48}")
_DOTTED: Final = re.compile(r"[A-Za-z_]\w{0,60}(?:\.[A-Za-z_]\w{0,60}){1,6}")
# Written like a name in code, and known to everybody.
_BRANDS: Final = words(_TABLE["brands"])
# The names that a tool's result is about: of a traceback, of the head of a hunk, of what was found to be defined.
_TOLD_OF: Final = re.compile(
    r"(?:\d, in |\d: in )([A-Za-z_][A-Za-z0-9_]{3,60})$"
    r"|\b(?:class|def|func|fn|function|interface|struct|trait|enum) ([A-Za-z_][A-Za-z0-9_]{3,60})(?= ?[(:{<]| extends)",
    re.MULTILINE,
)
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9_-]{1,63}){1,6}(?::\d{1,5})?")
_ENDINGS: Final = words(_TABLE["endings"])
_ENCODED: Final = re.compile(r"[A-Za-z0-9+/=\\]{36,}")
_OPAQUE: Final = 24  # letters and digits in a row, of both cases: rather a secret than a name


def found(message: Mapping[str, Any]) -> list[str]:
    """The identifiers of a message in the order in which they first appear, at most `MOST`, for the host to keep with
    the message. Rows in a tool's result do not count, and neither does a result that only repeats earlier messages.
    Takes messages of any shape."""
    names = message.get("role") != "tool"  # a quoted word of a person is a name; one of JSON is a field
    if not names and note_of(message).get("recalled"):
        return []
    values = find(said_in(message), names=names)
    if message.get("tool_calls"):
        for call in calls_of(message):
            values += find(call.arguments, names=False)
        values = list(dict.fromkeys(values))
    if not names and len(values) > SERIES:
        alike = series(values)
        values = [value for value in values if alike[value] <= SERIES]
    return values if len(values) <= MOST else [*values[: MOST // 2], *values[-(MOST // 2) :]]


def of(message: Mapping[str, Any]) -> list[str]:
    """Return the identifiers that the host noted when the message was stored, or those of a fresh search."""
    note = message.get(HOST)
    noted = note.get("identifiers") if isinstance(note, dict) else None
    return [value for value in noted if isinstance(value, str)] if isinstance(noted, list) else found(message)


def find(text: str, *, names: bool = True) -> list[str]:
    """Return the identifiers of a text, each once, in order. `names`: quoted and snake_case names as well."""
    text = ends(text, EDGE)
    places: list[tuple[int, str]] = []
    seen: set[str] = set()
    fields = dict(_fields(text)) if '"' in text else {}
    for run in _RUN.finditer(text):
        word = run[0]
        if word in seen or (word.isalpha() and word[1:].islower()) or (len(word) < 5 and word.isdigit()):
            continue  # most words
        if fields.get(run.start()) == "" or (not names and text.startswith('":', run.end())):
            continue  # the number of a place, or a key
        seen.add(word)
        places += zip(repeat(run.start()), _told(word, names))
    if _DIGIT.search(text):
        places = _with_numbers(text, places)
    if fields:
        places += [(start, value) for start, value in fields.items() if value]
    if _CAPITALS.search(text):
        places += _capitals(text)
    if not names:
        for one in _TOLD_OF.finditer(text):
            places.append((one.start(), one[1] or one[2]))
    if names:
        for one in _QUOTED.finditer(text):
            if value := _quoted(one):
                places.append((one.start(), value))
    if not text.isascii() and "/" in text:
        places += [(one.start(), one[0]) for one in _FOREIGN_PATH.finditer(text)]
    if not places:
        return []
    places.sort(key=itemgetter(0))
    # A value over a line's end is two cells of a table, and would be two lines of a list.
    return list(dict.fromkeys(value for _, value in places if len(value) <= LONGEST and len(value.splitlines()) == 1))


def _with_numbers(text: str, places: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Add the days, grouped numbers, measures and codes of a text, in place of what is inside them."""
    may_name_days = (
        _DAY_BY_NUMBERS.search(text) or _BEFORE_DAY.search(text) or not _MONTH.isdisjoint(_BEHIND_DAY.findall(text))
    )
    whole = [*_DAY.finditer(text)] if may_name_days else []
    # Most texts with a number have none of these: nothing is made for them.
    grouped, measures = [*_GROUPED.finditer(text)], [*_MEASURE.finditer(text)]
    covered: set[int] = set()
    if whole or grouped:
        covered.update(place for one in whole for place in range(*one.span()))
        grouped = [one for one in grouped if _is_grouped(one[0]) and one.start() not in covered]
        inside = {place for one in grouped for place in range(*one.span())}
        places = [(start, value) for start, value in places if start not in inside]
        places += [(one.start(), one[0].rstrip(",")) for one in (*whole, *grouped)]
        covered |= inside
    if measures:
        measures = [one for one in measures if one.start() not in covered]
        measured = {place for one in measures for place in range(one.start(), one.end())}
        places = [(start, value) for start, value in places if not (value.isdigit() and start in measured)]
        places += [(one.start(), value) for one in measures if (value := one[0].strip(" .,")) not in _CERTAINLY]
    for one in _CODE.finditer(text):
        if not text.startswith('", ', one.start() - 3):  # the line of a traceback
            places.append((one.start(), one[0]))
    return places


def _is_grouped(value: str) -> bool:
    """Whether numbers in groups are one value, and not a date or a calculation."""
    return value[0].isalpha() or (sum(map(str.isdigit, value)) >= _LEAST_DIGITS and _DATED.fullmatch(value) is None)


def _fields(text: str) -> Iterator[tuple[int, str]]:
    """Where the codes under a JSON key are, and their values; "" for a number that gives a position."""
    if '":' not in text and '" :' not in text:
        return
    for one in _FIELD.finditer(text):
        key = text[max(0, one.start() - _FIELD_NAME) : one.start()].rpartition('"')[2]
        words = [word.lower() for word in _FIELD_WORDS.findall(key)]
        if words and words[-1] in _CODED and _UNCODED.isdisjoint(words) and _is_short_code(one[1]):
            yield one.start(1), one[1]
        elif words and words[-1] in _PLACES and one[1].isdigit():
            yield one.start(1), ""


def codes_in(text: str) -> list[str]:
    """Return the codes that stand under a JSON key."""
    return [value for _, value in _fields(ends(text, EDGE)) if value]


def _is_short_code(value: str) -> bool:
    """Whether a value under the key of a code counts as one. A number may be too short, because every text would
    mention it."""
    if value.isdigit():
        return len(value) > 2
    if value.isalpha():
        return value.isupper() and 4 < len(value) < 9 and value not in _SHOUTED
    return any(map(str.isdigit, value)) and not any(_is_opaque(part) for part in re.split(r"[_#-]", value))


def _capitals(text: str) -> Iterator[tuple[int, str]]:
    """Return the places of words of capital letters that the words around them call a code."""
    ones = [one for one in _CAPITALS.finditer(text) if one[0] not in _SHOUTED]
    for one in ones:
        start, end = one.span()
        before = text[max(0, start - _NAMING_NEAR) : start]
        after = text[end : end + _NAMING_NEAR]
        if _LOUD_BEFORE.search(before) or _LOUD_AFTER.match(after) or _UNDER_KEY.search(before):
            continue  # somebody shouts, it is a heading, or the key of its field decides
        if _NAMING.search(_SAME_SENTENCE.split(before)[-1]) or _NAMING.search(_SAME_SENTENCE.split(after)[0]):
            yield start, one[0]


_LOUD_BEFORE: Final = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2,20}[^\S\n]{1,2}$")
_LOUD_AFTER: Final = re.compile(r"[^\S\n]{1,2}[A-Z]{2,20}(?![A-Za-z0-9])")
_UNDER_KEY: Final = re.compile(r"\"\s{0,2}:\s{0,2}\"?$")
_SAME_SENTENCE: Final = re.compile(r"[.!?](?=\s)|[。！？।\n]")
_DIGIT: Final = re.compile(r"[0-9]")
# A run with a digit in it. Up to three letters before digits tell a form ("ms12"), if it is not hexadecimal.
_COUNTED: Final = re.compile(
    r"(?<![A-Za-z0-9])(?:[0-9a-f]{6,}(?![A-Za-z0-9])"
    r"|((?:[A-Za-z]{1,3}(?=[0-9]+(?![A-Za-z0-9])))?)[A-Za-z]*[0-9][A-Za-z0-9]*)"
)
_WORD: Final = re.compile(r"[A-Za-z]{4,}")  # a shorter one is a unit or an ending, which tells forms apart


def alike(value: str, others: Iterable[str]) -> list[str]:
    """Return those of the `others` that have the form of a value."""
    return [other for other in others if _form(other) == _form(value)]


def series(values: Sequence[str]) -> dict[str, int]:
    """Return for each of `values` the number of those that have its form."""
    forms = {value: _form(value) for value in values}
    count = Counter(forms.values())
    return {value: count[form] for value, form in forms.items()}


def _form(value: str) -> str:
    return _WORD.sub("a", _COUNTED.sub(r"\g<1>0", value))


def _quoted(match: re.Match[str]) -> str:
    value = next(group for group in match.groups() if group is not None).strip()
    return value if len(value) > 1 and value.count(" ") < 6 else ""


# -- kinds of words ------------------------------------------------------------------------------


def _told(run: str, names: bool) -> Iterator[str]:
    """Return the identifiers in a run of characters without spaces."""
    if "://" in run:
        yield run.rstrip(".:?&=-")[:LONGEST]
        return
    run = run.lstrip(":=?&+%-").rstrip(".:?&=+~-")
    if run.isalpha():
        if len(run) > 4 and (
            _EXCEPTION.fullmatch(run) or _ERRNO.fullmatch(run) or (names and _CAMEL.fullmatch(run) and _is_own(run))
        ):
            yield run
    elif "=" in run or "&" in run:
        for part in re.split(r"[=&?]", run):
            yield from _told(part, names)
    elif len(run) > 1 and (any(test(run) for test in _TESTS) or (names and _is_name(run))):
        yield run


def is_time(value: str) -> bool:
    """Whether a value is only a time of day, which says hardly anything."""
    return _TIME.fullmatch(value) is not None


def _is_path(run: str) -> bool:
    if "/" not in run and "\\" not in run:
        return False
    if _ENCODED.fullmatch(run) and not (run.islower() or run.replace("/", "").isalpha()):
        return False  # a line of encoded data, a key perhaps
    if run[1:3] == ":\\" and run[0].isalpha():
        return True
    parts = [part for part in re.split(r"[/\\]", run) if part]
    if not parts or all(part.isdigit() for part in parts):
        return False
    rooted = run.startswith(("/", "~/", "./", "../"))
    telling = any(not part.isalpha() for part in parts)
    return telling if len(parts) < 2 or (not rooted and len(parts) < 3) else True


def _is_code(run: str) -> bool:
    """Whether a run with a digit is an id, a version, a date or hexadecimal."""
    if not _DIGIT.search(run) or is_time(run):
        return False
    if _UUID.fullmatch(run) or _NUMBER.fullmatch(run) or _DATE.fullmatch(run):
        return True
    if _HEX.fullmatch(run):
        return run.startswith("0x") or not run.isalpha()
    if len(run) < 4 or not _MIXED.fullmatch(run) or _ORDINAL.fullmatch(run) or not any(map(str.isalpha, run)):
        return False
    return not any(_is_opaque(part) for part in re.split(r"[_.:#+-]", run))


def _is_opaque(part: str) -> bool:
    mixed = any(map(str.islower, part)) and any(map(str.isupper, part))
    return len(part) > _OPAQUE and (mixed or len(part) > 64)


def _is_constant(run: str) -> bool:
    return "_" in run.strip("_") and run.isupper() and len(run) > 4 and run.replace("_", "").isalnum()


def _is_file_or_host(run: str) -> bool:
    if run.startswith("."):
        return run.startswith((".env", ".git", ".docker", ".bash", ".ssh", ".npm", ".eslint", ".prettier"))
    if "." not in run or not _HOST_NAME.fullmatch(run):
        return False
    ending = run.rpartition(".")[2].partition(":")[0].lower()
    return ending in _ENDINGS or (run.count(".") > 1 and run.islower() and len(run) > 6)


def _is_name(run: str) -> bool:
    """Whether a run is a name or a time of day. In the output of tools such runs mean nothing."""
    if _NAME.fullmatch(run) or is_time(run) or (_CAMEL.fullmatch(run) and _is_own(run)):
        return True
    return _DOTTED.fullmatch(run) is not None and any(
        _NAME.fullmatch(part) or (_CAMEL.fullmatch(part) and _is_own(part)) for part in run.split(".")
    )


def _is_own(run: str) -> bool:
    """Whether a word with capital letters inside is a name in somebody's code, and not a brand or random text."""
    return run not in _BRANDS and (run.isalpha() or not _is_opaque(run))


def _is_address(run: str) -> bool:
    return "@" in run and bool(_EMAIL.fullmatch(run) or _MENTION.fullmatch(run))


_TESTS: Final[tuple[Callable[[str], bool], ...]] = (_is_path, _is_address, _is_code, _is_constant, _is_file_or_host)
