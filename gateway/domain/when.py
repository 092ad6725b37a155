"""Times in people's words: "tomorrow at 9", "in 20 minutes", "jeden Montag um 8", "каждый день в 9", "明天早上9点".

A small grammar of the commonest forms in six languages (their words: `time_words`). It reads parts one after another
(a span, a rule, a day, a time of day) at the beginning or the end of a text; the rest is what is to be said. What it
does not know, it refuses, because a reminder at another time than the meant one is worse than none. Only the two ends
of a text are read, so a long text costs no more than a short one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta, tzinfo
from functools import cached_property
from typing import Final, Generic, TypeVar

from gateway.domain import time_words as words
from gateway.domain.recurrence import MOST_TIMES, Recurrence, Timetable, Unit, local_of, utc_of

K = TypeVar("K")

_FURTHEST: Final = 50 * 366 * 86_400.0  # seconds
_READ: Final = 120  # characters of each end of a text
_MORNING: Final = time(9)  # of a day without a time
_EVENING: Final = time(20)  # "tonight"

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
    elif parts.time is None and not parts.spans:
        behind, shorter = _at_end(rest)
        if behind is not None and behind.is_time_only:
            parts.time, rest = behind.time, shorter
    if parts is None:
        raise NoTime(text[:_READ])
    return _resolved(parts, _cleaned(rest), now, zone)


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
    month_day: int | None = None
    day: date | None = None  # of the year 1: of the next year in which it is yet to come
    offset: int | None = None
    weekday: int | None = None
    after_today: bool = False
    time: time | None = None

    @property
    def is_time_only(self) -> bool:
        """Say whether nothing but a time of day was read."""
        return self.time is not None and not self.spans and self.rule is None and not self.has_day

    @property
    def has_day(self) -> bool:
        """Say whether a day was read."""
        return self.day is not None or self.offset is not None or self.weekday is not None


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
_SPAN: Final = rf"(?:{words.HALF_HOUR}|{_NUMBER}{_any(words.UNITS.values())}){_SPAN_END}"
_SPANS: Final = _Pattern(
    rf"(?P<before>(?:{words.IN})\s+)?"
    rf"(?P<spans>{_SPAN}(?:\s*(?:,\s*|(?:{words.AND})\s+)?{_SPAN}){{0,4}}|(?:(?<=через\s)){_any(words.UNITS.values())}{_END})"
    rf"(?:\s*(?P<behind>(?:{words.AFTERWARDS}){_END}))?"
)
_ONE_SPAN: Final = _Pattern(
    rf"(?P<half>{words.HALF_HOUR})|(?P<number>{_NUMBER})(?P<unit>{_any(words.UNITS.values())}){_SPAN_END}"
)
_NAMED_RULE: Final = _choice(words.RULES, _END)
_RULE: Final = _Pattern(
    rf"(?:{words.EVERY})\s*(?:(?P<other>{words.OTHER})\s+|(?P<number>{_NUMBER}))?(?P<unit>{_any(words.UNITS.values())}){_END}"
)
_RULE_DAYS: Final = _Pattern(
    rf"(?:{words.EVERY}|(?:{words.ON})(?=\s+\w+s\b))\s*"
    rf"(?P<days>{_any(words.WEEKDAYS)}{_END}(?:\s*(?:[,，、]|(?:{words.AND})\b|和)?\s*(?:{words.ON})?\s*"
    rf"{_any(words.WEEKDAYS)}{_END}){{0,6}})"
)
_MONTH_DAY: Final = _Pattern(
    rf"(?:(?:{words.ON})\s+)?(?:the\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.|号|號|日|-?го)(?!\d)"
)
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
    rf"(?:(?:{words.ON})\s+)?(?:(?P<next>{words.NEXT})\s*)?(?P<weekday>{_any(words.WEEKDAYS)}){_END}"
)
_ONE_WEEKDAY: Final = _Pattern(rf"(?<![^\W{_CJK}]){_any(words.WEEKDAYS)}{_END}")
_NEXT_UNIT: Final = _Pattern(rf"(?:{words.NEXT})\s*(?P<unit>{_any(words.UNITS.values())}){_END}")
_WEEKDAYS: Final = _choice(dict(enumerate(words.WEEKDAYS)))
_MONTHS: Final = _choice(dict(enumerate(words.MONTHS, 1)))
_UNITS: Final = _choice(words.UNITS)
_NUMBERS: Final = _choice({**words.NUMBERS, 1: f"{words.NUMBERS[1]}|eins", 2: f"{words.NUMBERS[2]}|两"})
_PARTS_OF_HOUR: Final = _choice(words.PARTS_OF_HOUR)
_HALF: Final = _choice({half: f"{text}|{words.OF_DAY_BEFORE[half]}" for half, text in words.OF_DAY.items()})
_AT: Final = rf"(?:{words.AT})(?:\s+|(?<=@))"
_OF_DAY: Final = rf"(?:\s*(?P<half>{_any(words.OF_DAY.values())})(?!\w))?"
_TIMES: Final = (
    _Pattern(rf"(?:{_AT})?(?P<hour>\d{{1,2}})[:：](?P<minute>\d{{2}})(?::\d{{2}})?(?:\s*(?:uhr)\b)?(?!\d){_OF_DAY}"),
    _Pattern(rf"{_AT}(?P<hour>\d{{1,2}})\.(?P<minute>\d{{2}})(?:\s*(?:uhr)\b)?(?!\d){_OF_DAY}"),
    _Pattern(rf"(?:{_AT})?(?P<hour>\d{{1,2}})\s*(?P<half>{_any(words.OF_DAY.values())})(?!\w)"),
    _Pattern(
        rf"(?:{_AT})?(?P<before>{_any(words.OF_DAY_BEFORE.values())}|中午)?\s*(?P<hour>\d{{1,2}}|十[一二]|[一二两三四五六七八九十])"
        r"[点點时時](?:钟|鐘)?(?:(?P<minute>\d{1,2})分?|(?P<halfpast>半))?"
    ),
    _Pattern(
        rf"(?:{_AT})?(?P<hour>\d{{1,2}}|(?:{words.HOURS_IN_FULL})(?=\s))\s*(?:{words.HOURS})"
        rf"(?:\s*(?P<minute>\d{{2}})(?!\d))?{_END}{_OF_DAY}"
    ),
    _Pattern(
        rf"(?:{_AT})?(?P<part>{_any(words.PARTS_OF_HOUR.values())})\s+(?P<hour>\d{{1,2}}|{words.HOUR_NUMBERS}){_END}{_OF_DAY}"
    ),
    _Pattern(rf"{_AT}(?P<hour>\d{{1,2}}|{words.HOUR_NUMBERS})(?![\d/]|[.:]\d){_END}{_OF_DAY}"),
)
_LAST_HOUR: Final = _Pattern(r"(?P<hour>\d{1,2})\s*\Z")  # "tomorrow 9", and nothing behind it
_NAMED_TIMES: Final = _choice(
    {at: rf"(?:{_AT}|(?:{words.THIS})\s+)?(?:{text})" for at, text in words.NAMED_TIMES.items()}, _END
)
_TONIGHT: Final = _Pattern(rf"(?:{words.TONIGHT}){_END}")
_LEAD: Final = _Pattern(rf"(?:{words.LEAD})(?:\s+|(?<=[{_CJK}]))")
_SIGNS: Final = " \t\r\n,，、:：-–—"


def _span(parts: _Parts, text: str, at: int) -> int:
    found = _SPANS.match(text, at)
    if found is None or parts.spans or parts.rule is not None or parts.has_day or parts.time is not None:
        return at
    spans = [
        (30, "minute") if each["half"] else (_number(each["number"]), _UNITS.of(each["unit"]))
        for each in _ONE_SPAN.finditer(found["spans"])
    ] or [(1, _UNITS.of(found["spans"]))]
    is_bare = not found["before"] and not found["behind"]
    if is_bare and (at or not found["spans"][0].isdecimal() or any(unit not in _EXACT for _, unit in spans)):
        return at  # "two hours" in the midst of a text is nothing to be reminded after, nor is "2 days before Easter"
    parts.spans += spans
    return found.end()


def _rule(parts: _Parts, text: str, at: int) -> int:
    if parts.rule is not None or parts.spans:
        return at
    if found := _RULE_DAYS.match(text, at):
        days = {_WEEKDAYS.of(each[0]) for each in _ONE_WEEKDAY.finditer(found["days"])}
        parts.rule = Recurrence(unit="week", weekdays=tuple(sorted(days)))
        return found.end()
    if named := _NAMED_RULE.match(text, at):
        parts.rule = Recurrence.parse(named[0])
        return named[1]
    if (found := _RULE.match(text, at)) is None:
        return at
    unit, count = _UNITS.of(found["unit"]), 2 if found["other"] else _number(found["number"])
    if unit == "second":
        raise BadTime("I do not repeat anything more often than each minute.")
    if not 1 <= count <= MOST_TIMES:
        raise BadTime(f"A time that comes again has a number from 1 to {MOST_TIMES:,}, such as in: every 2 hours.")
    parts.rule = Recurrence(unit=_repeatable(unit), count=count)
    return found.end()


def _month_day(parts: _Parts, text: str, at: int) -> int:
    if parts.rule is None or parts.rule.unit != "month" or parts.month_day is not None:
        return at
    found = _MONTH_DAY.match(text, at)
    if found is None or not 1 <= int(found["day"]) <= 31:
        return at
    parts.month_day = int(found["day"])
    return found.end()


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
    if parts.has_day or parts.spans:
        return at
    if found := _TONIGHT.match(text, at):
        parts.offset, parts.time = 0, parts.time or _EVENING
        return found.end()
    if day := _DAYS.match(text, at):
        parts.offset, end = day
        return end
    if found := _WEEKDAY.match(text, at):
        parts.weekday, parts.after_today = _WEEKDAYS.of(found["weekday"]), bool(found["next"])
        return found.end()
    if found := _NEXT_UNIT.match(text, at):
        parts.spans.append((1, _UNITS.of(found["unit"])))
        return found.end()
    return at


def _time(parts: _Parts, text: str, at: int) -> int:
    if parts.time is not None or any(unit in ("second", "minute", "hour") for _, unit in parts.spans):
        return at
    for pattern in _TIMES:
        if found := pattern.match(text, at):
            said = found.groupdict()
            minute = 30 if said.get("halfpast") else int(said.get("minute") or 0)
            named = _time_of(_number(said["hour"]), minute, _half(said), found[0].strip())
            parts.time = _moved(named, _PARTS_OF_HOUR.of(said["part"]) if said.get("part") else 0)
            return found.end()
    if (parts.has_day or parts.rule) and (found := _LAST_HOUR.match(text, at)):
        parts.time = _time_of(int(found["hour"]), 0, "", found[0])
        return found.end("hour")
    if moment := _NAMED_TIMES.match(text, at):
        parts.time = time.fromisoformat(moment[0])
        return moment[1]
    return at


def _moved(at: time, minutes: int) -> time:
    """A time of day some minutes later, or earlier."""
    return (datetime.combine(date.min.replace(day=2), at) + timedelta(minutes=minutes)).time()


def _half(said: Mapping[str, str | None]) -> str:
    """ "am", "pm" or ""."""
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
    _rule,
    _month_day,
    _date,
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
            return parts, text[: len(text) - len(tail) + begin]
    return None, text


def _beginnings(text: str) -> Iterator[int]:
    """Yield the places where a word begins, or may begin: Chinese words have no space before them."""
    for at, sign in enumerate(text):
        before = text[at - 1] if at else " "
        if not sign.isspace() and (not before.isalnum() or sign >= "\u4e00" or before >= "\u4e00"):
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
    if parts.time is not None:
        local = datetime.combine(local.date(), parts.time)
    by_calendar = local != local_of(now, zone)
    due = (utc_of(local, zone) if by_calendar else now) + seconds
    return When(start=local_of(due, zone), due=due, rest=rest)


_EXACT: Final = {"second": 1, "minute": 60, "hour": 3_600}


def _once(parts: _Parts, local: datetime) -> datetime:
    """The next local time of a day, or of a time of day alone."""
    at = parts.time or _MORNING
    if parts.day is not None:
        return _next_year(parts.day, at, local)
    if parts.offset is not None:
        return datetime.combine(local.date() + timedelta(days=parts.offset), at)
    if parts.weekday is not None:
        ahead = (parts.weekday - local.weekday()) % 7
        found = datetime.combine(local.date() + timedelta(days=ahead), at)
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


def _repeated(parts: _Parts, rule: Recurrence, rest: str, now: float, zone: tzinfo) -> When:
    local = local_of(now, zone)
    if rule.unit in ("minute", "hour") and parts.time is None and not parts.has_day:
        first = now + rule.count * _EXACT[rule.unit]
        return When(start=local_of(first, zone), due=first, rule=rule, rest=rest)
    if parts.weekday is not None and rule.unit == "week":
        rule, parts.weekday = Recurrence(unit="week", count=rule.count, weekdays=(parts.weekday,)), None
    at = parts.time or _MORNING
    start = _once(parts, local) if parts.has_day else datetime.combine(local.date(), at)
    if parts.month_day is not None:
        long_month = local.month if local.month in _LONG else local.month - 1 or 12
        year = local.year - 1 if long_month > local.month else local.year
        start = datetime.combine(date(year, long_month, parts.month_day), at)
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
