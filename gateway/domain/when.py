"""Times in people's words: "tomorrow at 9", "in 20 minutes", "jeden Montag um 8", "каждый день в 9", "明天早上9点".

A small grammar of the commonest forms in six languages (their words: `time_words`). It reads parts one after another
(a span, a rule, a day, a time of day) at the beginning or the end of a text; the rest is what is to be said. What it
does not know, it refuses, because a reminder at another time than the meant one is worse than none. Only the two ends
of a text are read, so a long text costs no more than a short one.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time, timedelta, tzinfo
from functools import cached_property
from itertools import pairwise
from typing import Final, Generic, TypeVar

from gateway.domain import time_words as words
from gateway.domain.recurrence import MOST_TIMES, Recurrence, Timetable, Unit, local_of, utc_of

K = TypeVar("K")

_FURTHEST: Final = 50 * 366 * 86_400.0  # seconds
_READ: Final = 120  # characters of each end of a text
_MORNING: Final = time(9)  # of a day without a time
_EVENING: Final = time(20)  # "tonight"
_EARLY: Final = 5  # an hour before this one is at night, not in the evening
_SHORT: Final = 3  # letters: "sun" at the end of a text is perhaps no day
_LAST_DAY: Final = 32  # of a month, whichever its number is

EXAMPLES: Final = (
    "in 20 minutes",
    "tomorrow at 9",
    "monday 18:30",
    "2027-01-31 08:00",
    "every weekday at 8",
    "every 2 hours",
)


class NoTime(ValueError):
    """A text says no time that this grammar knows."""


class BadTime(ValueError):
    """A time that cannot be, as a sentence for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class When:
    """A time that a text says. `start` is naive local time, `due` its moment (seconds since the epoch): with a `rule`
    the first that is yet to come. `rest`: the text without the time."""

    start: datetime
    due: float
    rule: Recurrence | None = None
    rest: str = ""


def read(text: str, now: float, zone: tzinfo) -> When:
    """The time at the beginning of a text, else at its end. Raises NoTime, BadTime."""
    text = text.strip()
    parts, rest = _at_beginning(text)
    if parts is None:
        parts, rest = _at_end(text)
    elif not parts.spans:
        parts, rest = _with_end(parts, text, rest)
    if parts is None or not parts.is_whole:
        raise NoTime(text[:_READ])
    _check_rest(parts, text, rest)
    return _resolved(parts, _cleaned(rest), now, zone)


def _check_rest(parts: _Parts, text: str, rest: str) -> None:
    """Raises BadTime if the time goes on in the rest: a part of it that is passed over makes another time of it."""
    if not text.endswith(rest):
        return
    if _EXCEPT.match(rest) and parts.rule is not None:
        raise BadTime(f"I cannot leave out days. Name those that are meant: {_SOME_DAYS}.")
    more = _AND_MORE.match(rest[:_READ])
    hour_too = more is not None and parts.clock is not None and _HOUR.match(rest, more.end())
    if more is not None and (hour_too or _scan(rest[:_READ], more.end())[1] > more.end()):
        raise BadTime(f'There are two times, and I can keep one at a time: "{text[: len(text) - len(rest)].strip()}".')
    if parts.clock is not None and _MORE_HOURS.match(rest[:_READ]):
        raise BadTime(f"I need one time of day at a time. For example: {EXAMPLES[1]} call Ann.")
    if parts.at is None and (parts.has_day or parts.rule) and (vague := _NO_ONE_TIME.match(rest[:_READ])):
        raise BadTime(f'I need one time of day, not "{vague[0].strip(_SIGNS)}". For example: {EXAMPLES[1]} call Ann.')
    if parts.spans and _ON_WEEKDAY.match(rest[:_READ]):
        raise BadTime(f"I cannot tell which day that is. Say its date: {EXAMPLES[3]}.")
    is_monthly = parts.rule is not None and parts.rule.unit == "month" and parts.month_day is None
    if is_monthly and _NTH_WEEKDAY.match(rest[:_READ]):
        raise BadTime("I can repeat by the day of the month, not by its weekdays: every month on the 15th at 9.")


def _with_end(parts: _Parts, text: str, rest: str) -> tuple[_Parts, str]:
    """The parts at the beginning, with what the end adds: "tomorrow call mum at 9". Raises BadTime for two times."""
    behind, shorter = _at_end(rest)
    if behind is None or behind.spans or behind.rule is not None:
        return parts, rest
    if behind.is_time_only:
        if parts.clock is None and (behind.clock or not parts.part_of_day):
            parts.clock, parts.part_of_day = behind.clock, parts.part_of_day or behind.part_of_day
            return parts, shorter
        return parts, rest
    said = rest[len(shorter) :].strip(_SIGNS)
    if parts.is_vague and (behind.clock is not None or parts.is_short):
        _, before = _at_end(text)
        return behind, before  # "morning run tomorrow at 7"
    if parts.is_time_only and (len(said) > _SHORT or said >= "\u4e00"):
        first = text[: len(text) - len(rest)].strip(_SIGNS)
        raise BadTime(f'There are two times, "{first}" and "{said}". Put the whole time first: {EXAMPLES[1]} call Ann.')
    return parts, rest


def read_exactly(text: str, now: float, zone: tzinfo) -> When:
    """A text that is a time and nothing else; also an ISO time with an offset. Raises NoTime, BadTime."""
    text = text.strip()
    try:
        stated = datetime.fromisoformat(text)
    except ValueError:
        stated = None
    if stated is not None and stated.tzinfo is not None:
        due = stated.timestamp()
        return _checked(When(start=local_of(due, zone), due=due), now, zone)
    found = read(text, now, zone)
    if found.rest:
        raise NoTime(text[:_READ])
    return found


# -- the parts -----------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Parts:
    """The parts of a time that were read so far."""

    spans: list[tuple[int, str]] = field(default_factory=list)
    rule: Recurrence | None = None
    month_day: int | None = None  # or _LAST_DAY
    is_sure: bool = True  # that the number is a day of a month, even if no time of day is said
    day: date | None = None  # of the year 1: of the next year in which it is yet to come
    offset: int | None = None
    weekday: int | None = None
    after_today: bool = False
    is_short: bool = False  # the weekday is said in two or three letters, which may be a word: "sun", "mon"
    next_week: bool = False
    next_month: bool = False
    clock: time | None = None
    part_of_day: time | None = None  # "in the evening", as the time that this means alone

    @property
    def at(self) -> time | None:
        """The time of day: "in the evening" says of an hour which half of the day it is in."""
        part, said = self.part_of_day, self.clock
        if said is None or part is None or part.hour < 12 or not 1 <= said.hour <= 12:
            return part if said is None else said
        if said.hour == 12:
            return said if part.hour < 19 else said.replace(hour=0)
        return said if said.hour < _EARLY and part >= _EVENING else said.replace(hour=said.hour + 12)

    @property
    def is_by_night(self) -> bool:
        """Say whether the time is after midnight, but belongs to the day before: "tonight at 2"."""
        part, at = self.part_of_day, self.at
        return part is not None and at is not None and part.hour >= 19 and at.hour < _EARLY

    @property
    def is_time_only(self) -> bool:
        """Say whether nothing but a time of day was read."""
        return self.at is not None and not self.spans and self.rule is None and not self.has_day

    @property
    def is_vague(self) -> bool:
        """Say whether it may be no time at all, but the first words of what is to be said: "morning run"."""
        bare = self.is_time_only and self.clock is None
        return bare or ((self.month_day is not None or self.is_short) and self.rule is None and self.at is None)

    @property
    def is_whole(self) -> bool:
        """Say whether the parts are a time: "am 15." alone may begin anything."""
        return self.month_day is None or self.is_sure or self.rule is not None or self.at is not None

    @property
    def has_day(self) -> bool:
        """Say whether a day was read."""
        others = self.month_day is not None or self.next_week or self.next_month
        return others or self.day is not None or self.offset is not None or self.weekday is not None


_CJK: Final = "\u4e00-\u9fff"
_END: Final = rf"(?:(?<=[{_CJK}])|(?![^\W{_CJK}]))"  # of a word; Chinese words need no space behind them
_GAP: Final = re.compile(r"[\s,，、]*")
_NUMBER: Final = rf"(?:\d{{1,9}}\s*|(?:{'|'.join(words.NUMBERS.values())})(?:\s+|(?<=[{_CJK}])))"


class _Pattern:
    """A pattern that is compiled when it is first used: all of them take a fifth of a second, and a program starts
    faster without. So whoever serves others meanwhile reads a time in a thread."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._text, re.IGNORECASE)

    def match(self, text: str, at: int = 0) -> re.Match[str] | None:
        return self._compiled.match(text, at)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._compiled.fullmatch(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self._compiled.finditer(text)


@dataclass(frozen=True, slots=True)
class _Choice(Generic[K]):
    """One pattern for several values, each with a group of its own."""

    values: tuple[K, ...]
    pattern: _Pattern

    def match(self, text: str, at: int) -> tuple[K, int] | None:
        """The value that is said here, and where it ends."""
        found = self.pattern.match(text, at)
        return None if found is None or found.lastindex is None else (self.values[found.lastindex - 1], found.end())

    def of(self, text: str) -> K:
        """The value of a text that another pattern found."""
        found = self.pattern.fullmatch(text.strip())
        assert found is not None, "both patterns have the same words"
        assert found.lastindex is not None, "each value has a group"
        return self.values[found.lastindex - 1]


def _choice(texts: Mapping[K, str], end: str = "") -> _Choice[K]:
    return _Choice(tuple(texts), _Pattern(f"(?:{'|'.join(f'({text})' for text in texts.values())}){end}"))


def _any(alternatives: Iterable[str]) -> str:
    return f"(?:{'|'.join(alternatives)})"


_SPAN_END: Final = rf"(?:(?<=[{_CJK}])|(?![^\W\d{_CJK}]))"  # "1h30m"
_HOURS_NUMBER: Final = rf"(?:\d{{1,3}}|{_any(words.NUMBERS.values())})"
_HALVES: Final = (
    rf"{_HOURS_NUMBER}(?:{words.AND_A_HALF_BEFORE})(?:{words.UNITS['hour']})"
    rf"|{_HOURS_NUMBER}\s+(?:{words.UNITS['hour']})\s+(?:{words.AND_A_HALF_BEHIND})"
    rf"|\d{{1,3}}[.,]\d{{1,2}}\s*(?:{words.UNITS['hour']})"
)
_PART_OF_AN_HOUR: Final = _choice(words.PARTS_OF_AN_HOUR, _SPAN_END)
_SPAN: Final = (
    rf"(?:{_any(words.PARTS_OF_AN_HOUR.values())}|{_HALVES}|{_NUMBER}{_any(words.UNITS.values())}){_SPAN_END}"
)
_SPANS: Final = _Pattern(
    rf"(?P<before>(?:{words.IN})\s+)?"
    rf"(?P<spans>{_SPAN}(?:\s*(?:,\s*|(?:{words.AND})\s+)?{_SPAN}){{0,4}}|(?:(?<=через\s)){_any(words.UNITS.values())}{_END})"
    rf"(?:\s*(?P<behind>(?:{words.AFTERWARDS}){_END}))?"
)
_ONE_SPAN: Final = _Pattern(
    rf"(?P<part>{_any(words.PARTS_OF_AN_HOUR.values())}){_SPAN_END}|(?P<halves>{_HALVES}){_SPAN_END}"
    rf"|(?P<number>{_NUMBER})(?P<unit>{_any(words.UNITS.values())}){_SPAN_END}"
)
_LEADING_NUMBER: Final = _Pattern(rf"\d{{1,3}}[.,]\d{{1,2}}|{_HOURS_NUMBER}")
_NAMED_RULE: Final = _choice(words.RULES, _END)
_RULE: Final = _Pattern(
    rf"(?:{words.EVERY})(?:\s+|(?<=[{_CJK}]))(?:(?P<other>{words.OTHER})\s+|(?P<number>{_NUMBER}))?(?P<unit>{_any(words.UNITS.values())}){_END}"
)
_RULE_DAYS: Final = _Pattern(
    rf"(?:{words.EVERY}|{words.EVERY_ON})\s*"
    rf"(?P<days>{_any(words.WEEKDAYS)}{_END}(?:\s*(?:[,，、]|(?:{words.AND})\b|和)?\s*(?:{words.ON})?\s*"
    rf"{_any(words.WEEKDAYS)}{_END}){{0,6}})"
)
_RULE_PART: Final = _choice(
    {at: rf"(?:{words.EVERY})(?:\s+|(?<=[{_CJK}]))(?:{text})" for at, text in sorted(words.EVERY_PART_OF_DAY.items())},
    rf"(?:(?<=[{_CJK}])|{_END})",
)
_OF_MONTH: Final = (
    rf"(?:\s+(?:(?P<next>{words.OF_NEXT_MONTH})|(?P<every>{words.OF_EVERY_MONTH})|(?P<this>{words.OF_MONTH})){_END})"
)
_MONTH_DAY: Final = _Pattern(
    rf"(?:(?P<lead>{words.EVERY})\s+)?(?:(?P<on>{words.ON})\s+)?(?:the\s+)?(?:d[ií]a\s+)?"
    rf"(?:(?P<day>\d{{1,2}})(?P<sign>st|nd|rd|th|er|\.|号|號|日|-?го|-?е)?(?P<number>\s+числ[ао])?|(?P<first>{words.FIRST_DAY}))"
    rf"(?![\d:.]|\w*[^\W\d{_CJK}]){_OF_MONTH}?"
)
_MONTH_END: Final = _Pattern(
    rf"(?:(?P<lead>{words.EVERY})\s+)?(?:(?:{words.ON})\s+)?(?:the\s+)?(?:{words.LAST_DAY}|{words.MONTH_END}){_OF_MONTH}"
    rf"|(?:(?P<alone_every>{words.EVERY})\s*)?(?:{words.MONTH_END_ALONE}){_END}"
    rf"|(?P<alone_next>{words.NEXT_MONTH_END_ALONE})"
    rf"|(?:{words.THIS_MONTH})(?:的)?(?:{words.LAST_DAY})"
)
_LAST_OF_RULE: Final = _Pattern(rf"的?(?:(?:{words.ON})\s+)?(?:the\s+)?(?:{words.LAST_DAY}){_END}")
_ISO: Final = _Pattern(
    rf"(?:(?:{words.ON})\s+)?(?P<year>\d{{4,9}})-(?P<month>\d{{1,2}})-(?P<day>\d{{1,2}})(?!\d)(?:T(?=\d))?"
)
_DOTTED: Final = _Pattern(
    rf"(?:(?:{words.ON})\s+)?(?P<day>\d{{1,2}})\.\s?(?P<month>\d{{1,2}})\.(?:\s?(?P<year>\d{{4}}))?(?!\d)"
)
_DAY_MONTH: Final = _Pattern(
    rf"(?:(?:{words.ON})\s+)?(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+|de\s+)?"
    rf"(?P<name>{_any(words.MONTHS)}){_END}\.?(?:,?\s+(?:de\s+)?(?P<year>\d{{4,9}})(?!\d|:))?"
)
_MONTH_NAME_DAY: Final = _Pattern(
    rf"(?:(?:{words.ON})\s+)?(?P<name>{_any(words.MONTHS)}){_END}\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?![\d:])"
    rf"(?:,?\s+(?P<year>\d{{4,9}})(?!\d|:))?"
)
_CHINESE_DATE: Final = _Pattern(r"(?:(?P<year>\d{4,9})年)?(?P<month>\d{1,2})月(?P<day>\d{1,2})[日号號]?")
_DAYS: Final = _choice({days: words.DAYS[days] for days in sorted(words.DAYS, reverse=True)}, _END)
_WEEKDAY: Final = _Pattern(
    rf"(?:(?:{words.ON})\s+)?(?:(?:{words.THIS})(?:\s+|(?<=[{_CJK}])))?(?:(?P<next>{words.NEXT})\s*)?"
    rf"(?P<weekday>{_any(words.WEEKDAYS)})(?:{_END}|(?={_any(words.PARTS_OF_DAY.values())}{_END})"
    rf"|(?=(?:{words.NAMED_TIMES['12:00']}){_END}))"
    rf"(?:\s+(?P<behind>{words.NEXT_BEHIND}){_END})?"
)
_ONE_WEEKDAY: Final = _Pattern(rf"(?<![^\W{_CJK}]){_any(words.WEEKDAYS)}{_END}")
_NEXT_UNIT: Final = _Pattern(rf"(?:{words.NEXT})\s*(?P<unit>{_any(words.UNITS.values())}){_END}")
_NEXT_WEEK: Final = _Pattern(rf"(?:{words.NEXT_WEEK})(?:{_END})")
_WEEKDAYS: Final = _choice(dict(enumerate(words.WEEKDAYS)))
_MONTHS: Final = _choice(dict(enumerate(words.MONTHS, 1)))
_UNITS: Final = _choice(words.UNITS)
_NUMBERS: Final = _choice({**words.NUMBERS, 1: f"{words.NUMBERS[1]}|eins", 2: f"{words.NUMBERS[2]}|两"})
_PARTS_OF_HOUR: Final = _choice({**words.PARTS_OF_HOUR, **words.MINUTES_OF_HOUR})
_PARTS_BEHIND: Final = _choice(words.PARTS_OF_HOUR_BEHIND)
_PART_BEHIND: Final = rf"(?:\s+(?P<behind>{_any(words.PARTS_OF_HOUR_BEHIND.values())}))?"
_HALF: Final = _choice({half: f"{text}|{words.OF_DAY_BEFORE.get(half, text)}" for half, text in words.OF_DAY.items()})
_AT: Final = rf"(?:{words.AT})(?:\s+|(?<=@))"
_OF_DAY: Final = rf"(?:\s*(?P<half>{_any(words.OF_DAY.values())})(?!\w))?"
_TIMES: Final = (
    _Pattern(rf"(?:{_AT})?(?P<hour>\d{{1,2}})[:：](?P<minute>\d{{2}})(?::\d{{2}})?(?:\s*(?:uhr)\b)?(?!\d){_OF_DAY}"),
    _Pattern(rf"{_AT}(?P<hour>\d{{1,2}})\.(?P<minute>\d{{2}})(?:\s*(?:uhr)\b)?(?!\d){_OF_DAY}"),
    _Pattern(rf"(?:{_AT})?(?P<hour>\d{{1,2}})\s*(?P<half>{_any(words.OF_DAY.values())})(?!\w)"),
    _Pattern(
        rf"(?:{_AT})?(?P<before>{_any(words.OF_DAY_BEFORE.values())}|中午)?\s*(?P<hour>\d{{1,2}}|十[一二]|[一二两三四五六七八九十])"
        r"[点點时時](?:钟|鐘)?(?:(?P<minute>\d{1,2})分?|(?P<halfpast>半)|(?P<quarter>[一三])刻)?"
    ),
    _Pattern(
        rf"(?:{_AT})?(?P<hour>\d{{1,2}}|(?:{words.HOURS_IN_FULL})(?=\s))\s*(?:{words.HOURS})"
        rf"(?:\s*(?P<minute>\d{{2}})(?!\d))?{_END}{_PART_BEHIND}{_OF_DAY}"
    ),
    _Pattern(
        rf"(?:{_AT})?(?P<part>{_any(words.PARTS_OF_HOUR.values())})\s+(?P<hour>\d{{1,2}}|{words.HOUR_NUMBERS}){_END}{_OF_DAY}"
    ),
    _Pattern(
        rf"{_AT}(?P<part>{_any(words.MINUTES_OF_HOUR.values())})\s+(?P<hour>\d{{1,2}}|{words.HOUR_NUMBERS}){_END}{_OF_DAY}"
    ),
    _Pattern(rf"{_AT}(?P<hour>\d{{1,2}}|{words.HOUR_NUMBERS})(?![\d/]|[.:]\d){_END}{_PART_BEHIND}{_OF_DAY}"),
)
_LAST_HOUR: Final = _Pattern(r"(?P<hour>\d{1,2})\s*\Z")  # "tomorrow 9", and nothing behind it
_NAMED_TIMES: Final = _choice(
    {at: rf"(?:{_AT}|(?:{words.THIS})\s+)?(?:{text})" for at, text in words.NAMED_TIMES.items()}, _END
)
_PARTS_OF_DAY: Final = _choice(
    {at: rf"(?:{_AT}|(?:{words.THIS})\s+)?(?:{text})" for at, text in words.PARTS_OF_DAY.items()}, _END
)
_NIGHTS: Final = _choice(words.NIGHTS, _END)
_OPEN_END: Final = _Pattern(rf".*(?<![^\W{_CJK}])(?:{words.EVERY})\s*")
_LEAD: Final = _Pattern(rf"(?:{words.LEAD})(?:\s+|(?<=[{_CJK}]))|d['’](?=\w)")
_EXCEPT: Final = _Pattern(rf"[\s,，]*(?:{words.EXCEPT})(?:\s|(?<=[{_CJK}]))")
_AND_MORE: Final = _Pattern(rf"[\s,，]*(?:(?:{words.AND}|or|oder|ou|o|или)\s+|或者?|[和跟、])")
_MORE_HOURS: Final = _Pattern(
    r"\s{0,9}[-–]\s{0,9}\d{1,2}\s{0,9}[ap]\.?m\b"
    rf"|\s{{0,9}}[,，、]\s{{0,9}}\d{{1,2}}(?::\d{{2}}(?!\d)|\s{{0,9}}(?:[,，、]|\Z|(?:{words.AND}|or|oder|ou|или)\s{{1,9}}\d{{1,2}}(?!\w)))"
)
_HOUR: Final = _Pattern(r"\d{1,2}(?![\w:/.%€$-])")
_BEFORE_OR_AFTER: Final = _Pattern(words.BEFORE_OR_AFTER)
_NO_ONE_TIME: Final = _Pattern(
    rf"[\s,，]*(?:(?:{words.NO_ONE_TIME})\s+\d{{1,2}}(?:[:.]\d{{2}}|\s?(?:[ap]m|h|uhr))?(?![\w:/])"
    r"|\d{1,2}\s?[-–]\s?\d{1,2}(?!\w))"
)
_ON_WEEKDAY: Final = _Pattern(rf"[\s,，]*(?:{words.ON})\s+{_any(words.WEEKDAYS)}{_END}")
_NTH_WEEKDAY: Final = _Pattern(
    rf"[\s,，]*的?(?:(?:{words.ON})\s+)?(?:the\s+)?(?:{words.ORDINALS})\s*{_any(words.WEEKDAYS)}{_END}"
)
_MORE_DAYS: Final = _Pattern(words.MORE_DAYS)
_DAY_NUMBERS: Final = "一二三四五六日"
_SOME_DAYS: Final = "every monday, tuesday and thursday at 9"
_SIGNS: Final = " \t\r\n,，、:：-–—"


def _span(parts: _Parts, text: str, at: int) -> int:
    found = _SPANS.match(text, at)
    if found is None or parts.spans or parts.rule is not None or parts.has_day or parts.clock is not None:
        return at
    spans = [
        (_minutes(each[0]), "minute")
        if each["part"] or each["halves"]
        else (_number(each["number"]), _UNITS.of(each["unit"]))
        for each in _ONE_SPAN.finditer(found["spans"])
    ] or [(1, _UNITS.of(found["spans"]))]
    is_bare = not found["before"] and not found["behind"]
    if is_bare and _BEFORE_OR_AFTER.match(text, found.end()):
        return at
    if is_bare and (at or not found["spans"][0].isdecimal() or any(unit not in _EXACT for _, unit in spans)):
        return at  # "two hours" in the midst of a text is nothing to be reminded after, nor is "2 days before Easter"
    parts.spans += spans
    return found.end()


def _minutes(said: str) -> int:
    """The minutes of "half an hour", "zweieinhalb Stunden" or "1.5 hours"."""
    if part := _PART_OF_AN_HOUR.match(said, 0):
        return part[0]
    number = _LEADING_NUMBER.match(said)
    assert number is not None, "each of them begins with a number"
    if "." in number[0] or "," in number[0]:
        return round(float(number[0].replace(",", ".")) * 60)
    return _number(number[0]) * 60 + 30


def _rule(parts: _Parts, text: str, at: int) -> int:
    if parts.rule is not None or parts.spans:
        return at
    if (each := _RULE_PART.match(text, at)) and parts.part_of_day is None:
        parts.rule, parts.part_of_day = Recurrence(unit="day"), time.fromisoformat(each[0])
        return each[1]
    if named := _NAMED_RULE.match(text, at):
        parts.rule = Recurrence.parse(named[0])
        return named[1]
    if found := _RULE_DAYS.match(text, at):
        days = {_WEEKDAYS.of(each[0]) for each in _ONE_WEEKDAY.finditer(found["days"])}
        more, end = _more_days(text, found.end())
        parts.rule = Recurrence(unit="week", weekdays=tuple(sorted(days | more)))
        return end
    if (found := _RULE.match(text, at)) is None:
        return at
    unit, count = _UNITS.of(found["unit"]), 2 if found["other"] else _number(found["number"])
    if unit == "second":
        raise BadTime("I do not repeat anything more often than each minute.")
    if not 1 <= count <= MOST_TIMES:
        raise BadTime(f"A time that comes again has a number from 1 to {MOST_TIMES:,}, such as in: every 2 hours.")
    parts.rule = Recurrence(unit=_repeatable(unit), count=count)
    return found.end()


def _more_days(text: str, at: int) -> tuple[set[int], int]:
    """The days behind a Chinese one, by their rising numbers, and where they end: "每周一三五"."""
    before, found = _DAY_NUMBERS.find(text[at - 1]), _MORE_DAYS.match(text, at)
    named = [_DAY_NUMBERS.index(sign) for sign in found[0] if sign in _DAY_NUMBERS] if found else []
    if found is None or before < 0 or any(one >= other for one, other in pairwise([before, *named])):
        return set(), at
    return set(named), found.end()


def _month_day(parts: _Parts, text: str, at: int) -> int:
    monthly = parts.rule is not None and parts.rule.unit == "month"
    if (parts.has_day and not parts.next_month) or parts.spans or not (monthly or parts.rule is None):
        return at
    if parts.month_day is not None:
        return at
    if found := _MONTH_END.match(text, at):
        day, is_rule = _LAST_DAY, bool(found["lead"] or found["every"] or found["alone_every"])
        parts.next_month = parts.next_month or bool(found["next"] or found["alone_next"])
    elif monthly and (found := _LAST_OF_RULE.match(text, at)):
        day, is_rule = _LAST_DAY, True
    elif (found := _MONTH_DAY.match(text, at)) and _names_day(found, monthly):
        day, is_rule = int(found["day"] or 1), bool(found["lead"] or found["every"])
        parts.next_month = parts.next_month or bool(found["next"])
        english = found["sign"] in ("st", "nd", "rd", "th")
        parts.is_sure = bool(parts.next_month or found["this"] or found["number"] or (found["on"] and english))
    else:
        return at
    parts.month_day = day
    if is_rule and not monthly:
        parts.rule = Recurrence(unit="month")
    return found.end()


def _names_day(found: re.Match[str], monthly: bool) -> bool:
    """Say whether a number is the day of a month: its month is said, or it has a sign of a day."""
    if found["this"] or found["every"] or found["next"]:
        return 1 <= int(found["day"] or 1) <= 31
    if not found["day"] or not 1 <= int(found["day"]) <= 31 or (found["lead"] and not found["number"]):
        return False
    if found["sign"] and (monthly or found["on"] or found["sign"] in "号號"):
        return True
    return bool(found["number"]) or (found["on"] or "").lower() in ("le", "el")


def _date(parts: _Parts, text: str, at: int) -> int:
    if parts.has_day or parts.spans:
        return at
    for pattern in (_ISO, _DOTTED, _CHINESE_DATE, _DAY_MONTH, _MONTH_NAME_DAY):
        if (found := pattern.match(text, at)) is None:
            continue
        said = found.groupdict()
        month = int(said["month"]) if said.get("month") else _MONTHS.of(said["name"])
        parts.day = _day(int(said["year"] or 0), month, int(said["day"]))
        return found.end()
    return at


def _day(year: int, month: int, day: int) -> date:
    if year > 9_000:
        raise BadTime(f"The year {year} is too far away: I remind of what comes within 50 years.")
    try:
        return date(year or 4, month, day)  # the year 4 has a 29 February
    except ValueError:
        raise BadTime(f"There is no day {day} in the month {month}{f' of {year}' if year else ''}.") from None


def _relative_day(parts: _Parts, text: str, at: int) -> int:
    if parts.spans:
        return at
    if parts.weekday is not None and not parts.next_week and (found := _NEXT_WEEK.match(text, at)):
        parts.next_week = True
        return found.end()
    if parts.weekday is not None or (parts.has_day and not parts.next_week):
        return at
    if found := _WEEKDAY.match(text, at):
        parts.weekday, following = _WEEKDAYS.of(found["weekday"]), found["next"] or found["behind"]
        parts.after_today = bool(following)
        parts.next_week = parts.next_week or (found["next"] or "").startswith("下")
        parts.is_short = len(found[0]) <= _SHORT and found[0].isascii()
        return found.end()
    if parts.next_week:
        return at
    if night := _NIGHTS.match(text, at):
        parts.offset, parts.part_of_day = night[0], _EVENING
        return night[1]
    if day := _DAYS.match(text, at):
        parts.offset, end = day
        return end
    if parts.rule is None and (found := _NEXT_WEEK.match(text, at)):
        parts.next_week = True
        return found.end()
    if found := _NEXT_UNIT.match(text, at):
        unit = _UNITS.of(found["unit"])
        parts.next_month = unit == "month" and parts.rule is None
        if not parts.next_month:
            parts.spans.append((1, unit))
        return found.end()
    return at


def _time(parts: _Parts, text: str, at: int) -> int:
    if any(unit in ("second", "minute", "hour") for _, unit in parts.spans):
        return at
    if parts.part_of_day is None and (part := _PARTS_OF_DAY.match(text, at)):
        parts.part_of_day = time.fromisoformat(part[0])
        return part[1]
    if parts.clock is not None:
        return at
    for pattern in _TIMES:
        if found := pattern.match(text, at):
            said = found.groupdict()
            minute = 30 if said.get("halfpast") else int(said.get("minute") or 0)
            minute = {"一": 15, "三": 45}.get(said.get("quarter") or "", minute)
            hour, half = _number(said["hour"]), _half(said)
            if half in ("evening", "night"):
                if hour == 12:  # midnight, which belongs to the evening before
                    parts.part_of_day = parts.part_of_day or _EVENING
                half = "am" if hour == 12 or (half == "night" and hour < _EARLY) else "pm"
            named = _time_of(hour, minute, half, found[0].strip())
            more = _PARTS_OF_HOUR.of(said["part"]) if said.get("part") else 0
            more = _PARTS_BEHIND.of(said["behind"]) if said.get("behind") else more
            parts.clock = _moved(named, more)
            return found.end()
    if (parts.has_day or parts.rule) and (found := _LAST_HOUR.match(text, at)):
        parts.clock = _time_of(int(found["hour"]), 0, "", found[0])
        return found.end("hour")
    if moment := _NAMED_TIMES.match(text, at):
        parts.clock = time.fromisoformat(moment[0])
        return moment[1]
    return at


def _moved(at: time, minutes: int) -> time:
    """A time of day some minutes later, or earlier."""
    return (datetime.combine(date.min.replace(day=2), at) + timedelta(minutes=minutes)).time()


def _half(said: Mapping[str, str | None]) -> str:
    """ "am", "pm", "evening", "night" or ""."""
    if before := said.get("before"):
        return "pm" if before == "中午" else _HALF.of(before)
    half = said.get("half")
    return _HALF.of(half) if half else ""


def _time_of(hour: int, minute: int, half: str, said: str) -> time:
    if half == "pm" and 1 <= hour < 12:
        hour += 12
    elif half == "am" and hour == 12:
        hour = 0
    if hour == 24 and minute == 0:
        hour = 0
    if hour > 23 or minute > 59:
        raise BadTime(f'"{said}" is no time of day: those are from 00:00 to 23:59.')
    return time(hour, minute)


_PARTS: Final[tuple[Callable[[_Parts, str, int], int], ...]] = (
    _span,
    _date,
    _month_day,
    _rule,
    _relative_day,
    _time,
)


def _scan(text: str, at: int) -> tuple[_Parts, int]:
    """The parts that stand one after another from here on, and where they end."""
    parts, end = _Parts(), at
    while True:
        begin = _gap(text, end) if end > at else at
        for part in _PARTS:
            after = part(parts, text, begin)
            if after > begin:
                end = after
                break
        else:
            return parts, end


def _gap(text: str, at: int) -> int:
    found = _GAP.match(text, at)
    return found.end() if found else at


def _at_beginning(text: str) -> tuple[_Parts | None, str]:
    head = text[:_READ]
    lead = _LEAD.match(head)
    for begin in dict.fromkeys((0, lead.end() if lead else 0)):
        parts, end = _scan(head, begin)
        if end > begin:
            return parts, text[end:]
    return None, text


def _at_end(text: str) -> tuple[_Parts | None, str]:
    text = text.rstrip(" .!?。！？")
    tail = text[-_READ:]
    for begin in _beginnings(tail):
        if begin == 0 and len(tail) < len(text):
            continue  # perhaps the middle of a word
        parts, end = _scan(f" {tail}", begin + 1)  # no span without a word before it
        if end == len(tail) + 1:
            rest = text[: len(text) - len(tail) + begin]
            return (None, text) if _OPEN_END.fullmatch(rest[-_READ:]) else (parts, rest)
    return None, text


def _beginnings(text: str) -> Iterator[int]:
    """Yield the places where a word begins, or may begin: Chinese words have no space before them."""
    for at, sign in enumerate(text):
        before = text[at - 1] if at else " "
        within = before in ":.," and sign.isdecimal() and text[at - 2 : at - 1].isdecimal()  # "8:30"
        if not sign.isspace() and not within and (not before.isalnum() or sign >= "\u4e00" or before >= "\u4e00"):
            yield at


def _cleaned(rest: str) -> str:
    """Return the text to say, without the words that only lead to it."""
    rest = rest.strip(_SIGNS)
    found = _LEAD.match(rest)
    return rest[found.end() :].strip(_SIGNS) if found else rest


# -- from words to a moment ----------------------------------------------------------------------


def _resolved(parts: _Parts, rest: str, now: float, zone: tzinfo) -> When:
    try:
        if parts.rule is not None:
            return _checked(_repeated(parts, parts.rule, rest, now, zone), now, zone)
        if (parts.next_week and parts.weekday is None) or (parts.next_month and parts.month_day is None):
            parts.spans.append((1, "week" if parts.next_week else "month"))
        if parts.spans:
            return _checked(_later(parts, rest, now, zone), now, zone)
        start = _once(parts, local_of(now, zone))
        return _checked(When(start=start, due=utc_of(start, zone), rest=rest), now, zone)
    except (OverflowError, ValueError) as error:
        if isinstance(error, BadTime):
            raise
        raise BadTime(_TOO_FAR) from None


_TOO_FAR: Final = "That is too far away: I remind of what comes within 50 years."


def _checked(when: When, now: float, zone: tzinfo) -> When:
    """Raises BadTime."""
    if when.due > now + _FURTHEST:
        raise BadTime(_TOO_FAR)
    if when.due <= now:
        past, present = f"{when.start:%Y-%m-%d %H:%M}", f"{local_of(now, zone):%A, %Y-%m-%d %H:%M}"
        raise BadTime(f"{past} is in the past: it is {present} now ({zone_name(zone)}).")
    return when


def zone_name(zone: tzinfo) -> str:
    """Return the common name of a zone."""
    return str(zone)


def _later(parts: _Parts, rest: str, now: float, zone: tzinfo) -> When:
    """A span from now on: of hours and less exactly, of days and more by the calendar."""
    local, seconds = local_of(now, zone), 0
    for number, unit in parts.spans:
        if unit in _EXACT:
            seconds += number * _EXACT[unit]
        elif unit in ("day", "week"):
            local += timedelta(days=number * (7 if unit == "week" else 1))
        else:
            months = number * (12 if unit == "year" else 1)
            if months > 12_000:
                raise BadTime(_TOO_FAR)
            local = Timetable(start=local, zone=zone, rule=Recurrence(unit="month", count=1)).local(months)
    if parts.at is not None:
        local = datetime.combine(local.date(), parts.at)
    by_calendar = local != local_of(now, zone)
    due = (utc_of(local, zone) if by_calendar else now) + seconds
    return When(start=local_of(due, zone), due=due, rest=rest)


_EXACT: Final = {"second": 1, "minute": 60, "hour": 3_600}


def _once(parts: _Parts, local: datetime) -> datetime:
    """The next local time of a day, or of a time of day alone."""
    at = parts.at or _MORNING
    if parts.day is not None:
        return _next_year(parts.day, at, local)
    if parts.month_day is not None:
        return _next_month(parts.month_day, at, local, 1 if parts.next_month else 0)
    if parts.offset is not None:
        by_night = parts.is_by_night or (at == time.min and not parts.offset)  # "today at midnight"
        return datetime.combine(local.date() + timedelta(days=parts.offset + by_night), at)
    if parts.weekday is not None and parts.next_week:
        monday = local.date() - timedelta(days=local.weekday())
        return datetime.combine(monday + timedelta(days=7 + parts.weekday + parts.is_by_night), at)
    if parts.weekday is not None:
        ahead = (parts.weekday - local.weekday()) % 7
        found = datetime.combine(local.date() + timedelta(days=ahead + parts.is_by_night), at)
        return found + timedelta(days=7) if found <= local or (parts.after_today and not ahead) else found
    found = datetime.combine(local.date(), at)
    return found if found > local else found + timedelta(days=1)


def _next_year(day: date, at: time, local: datetime) -> datetime:
    """A date, in the next year that has it where none was said."""
    if day.year > 4:
        return datetime.combine(day, at)
    for year in range(local.year, local.year + 9):
        try:
            found = datetime.combine(day.replace(year=year), at)
        except ValueError:
            continue
        if found > local:
            return found
    raise BadTime(_TOO_FAR)


def _next_month(day: int, at: time, local: datetime, ahead: int) -> datetime:
    """The next day of this number in a month that has it, or the last day of a month; so many months ahead."""
    months = local.year * 12 + local.month - 1
    for year, month in (divmod(months + more, 12) for more in range(ahead, ahead + 9)):
        last = monthrange(year, month + 1)[1]
        if day == _LAST_DAY or day <= last:
            found = datetime.combine(date(year, month + 1, min(day, last)), at)
            if found > local:
                return found
    raise BadTime(_TOO_FAR)


def _repeated(parts: _Parts, rule: Recurrence, rest: str, now: float, zone: tzinfo) -> When:
    local = local_of(now, zone)
    if rule.unit in ("minute", "hour") and parts.at is None and not parts.has_day:
        first = now + rule.count * _EXACT[rule.unit]
        return When(start=local_of(first, zone), due=first, rule=rule, rest=rest)
    if parts.weekday is not None and rule.unit == "week":
        rule, parts.weekday = Recurrence(unit="week", count=rule.count, weekdays=(parts.weekday,)), None
    if parts.is_by_night and rule.weekdays:  # "every friday night at 1"
        rule = replace(rule, weekdays=tuple(sorted((day + 1) % 7 for day in rule.weekdays)))
    at = parts.at or _MORNING
    dated = parts.has_day and parts.month_day is None
    start = _once(parts, local) if dated else datetime.combine(local.date(), at)
    if parts.month_day is not None:
        long_month = local.month if local.month in _LONG else local.month - 1 or 12
        year = local.year - 1 if long_month > local.month else local.year
        start = datetime.combine(date(year, long_month, min(parts.month_day, 31)), at)
    due = Timetable(start=start, zone=zone, rule=rule).after(now)
    if due is None:
        raise BadTime(_TOO_FAR)
    return When(start=start, due=due, rule=rule, rest=rest)


_LONG: Final = (1, 3, 5, 7, 8, 10, 12)  # months with 31 days; no two short ones follow one another


# -- words ---------------------------------------------------------------------------------------


def _number(text: str | None) -> int:
    said = (text or "1").strip()
    return int(said) if said.isdecimal() else _NUMBERS.of(said)


def _repeatable(unit: Unit | str) -> Unit:
    found: Unit = unit  # type: ignore[assignment]  # a second was refused before
    return found
