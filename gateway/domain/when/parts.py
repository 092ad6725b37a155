"""From words to the parts of a time: a span, a rule, a day, a time of day.

Each reader of `_READERS` looks at one place of a text. It notes on `Parts` what is said there and returns where that
ends; or the place itself, if nothing is said there that it knows. `scan` lets them read one after another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from itertools import pairwise
from typing import Final, cast

from msgspec import Struct, field

from gateway.domain.recurrence import LAST, MOST_TIMES, Recurrence, Unit
from gateway.domain.when import patterns

LAST_DAY: Final = 32  # of a month, whichever its number is
SHORT: Final = 3  # letters: "sun" at the end of a text is perhaps no day
EXACT: Final = {"second": 1, "minute": 60, "hour": 3_600}
_EVENING: Final = time(20)  # "tonight"
_EARLY: Final = 5  # an hour before this one is at night, not in the evening
_DAY_NUMBERS: Final = "一二三四五六日"


class BadTime(ValueError):
    """A time that cannot be, as a sentence for people."""


class TimeParts(Struct, kw_only=True):
    """The parts of a time that were read so far."""

    spans: list[tuple[int, str]] = field(default_factory=list)
    rule: Recurrence | None = None
    month_day: int | None = None  # or LAST_DAY
    is_sure: bool = True  # that the number is a day of a month, even if no time of day is said
    day: date | None = None  # of the year 4: of the next year in which it is yet to come
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


def scan(text: str, at: int) -> tuple[TimeParts, int]:
    """The parts that stand one after another from here on, and where they end."""
    parts, end = TimeParts(), at
    while True:
        begin = _gap(text, end) if end > at else at
        for part in _READERS:
            after = part(parts, text, begin)
            if after > begin:
                end = after
                break
        else:
            return parts, end


def _gap(text: str, at: int) -> int:
    found = patterns.GAP.match(text, at)
    return found.end() if found else at


# -- the readers ---------------------------------------------------------------------------------


def _span(parts: TimeParts, text: str, at: int) -> int:
    found = patterns.SPANS.match(text, at)
    if found is None or parts.spans or parts.rule is not None or parts.has_day or parts.clock is not None:
        return at
    spans = [
        (_minutes(each[0]), "minute")
        if each["part"] or each["halves"]
        else (_number(each["number"]), patterns.UNITS.of(each["unit"]))
        for each in patterns.ONE_SPAN.finditer(found["spans"])
    ] or [(1, patterns.UNITS.of(found["spans"]))]
    is_bare = not found["before"] and not found["behind"]
    if is_bare and patterns.HOURS_AND_MINUTES.match(found["spans"]):
        return at  # a time of day, as French has it
    if is_bare and patterns.BEFORE_OR_AFTER.match(text, found.end()):
        return at
    if is_bare and (at or not found["spans"][0].isdecimal() or any(unit not in EXACT for _, unit in spans)):
        return at  # "two hours" in the midst of a text is nothing to be reminded after, nor is "2 days before Easter"
    parts.spans += spans
    return found.end()


def _minutes(said: str) -> int:
    """The minutes of "half an hour", "zweieinhalb Stunden", "1.5 hours" or "1h30"."""
    if part := patterns.PART_OF_AN_HOUR.match(said, 0):
        return part[0]
    if both := patterns.HOURS_AND_MINUTES.match(said):
        return int(both["hours"]) * 60 + int(both["minutes"])
    number = patterns.LEADING_NUMBER.match(said)
    assert number is not None, "each of them begins with a number"
    if "." in number[0] or "," in number[0]:
        return round(float(number[0].replace(",", ".")) * 60)
    return _number(number[0]) * 60 + 30


def _rule(parts: TimeParts, text: str, at: int) -> int:
    if parts.rule is not None or parts.spans:
        return at
    if (each := patterns.RULE_PART.match(text, at)) and parts.part_of_day is None:
        parts.rule, parts.part_of_day = Recurrence(unit="day"), time.fromisoformat(each[0])
        return each[1]
    if named := patterns.NAMED_RULE.match(text, at):
        parts.rule = Recurrence.parse(named[0])
        return named[1]
    if found := patterns.RULE_DAYS.match(text, at):
        days = {patterns.WEEKDAYS.of(each[0]) for each in patterns.ONE_WEEKDAY.finditer(found["days"])}
        more, end = _more_days(text, found.end())
        parts.rule = Recurrence(unit="week", weekdays=tuple(sorted(days | more)))
        return end
    if (found := patterns.RULE.match(text, at)) is None:
        return at
    unit, count = patterns.UNITS.of(found["unit"]), 2 if found["other"] else _number(found["number"])
    if unit == "second":
        raise BadTime("I do not repeat anything more often than each minute.")
    if not 1 <= count <= MOST_TIMES:
        raise BadTime(f"A time that comes again has a number from 1 to {MOST_TIMES:,}, such as in: every 2 hours.")
    parts.rule = Recurrence(unit=cast(Unit, unit), count=count)
    return found.end()


def _more_days(text: str, at: int) -> tuple[set[int], int]:
    """The days behind a Chinese one, by their rising numbers, and where they end: "每周一三五"."""
    before, found = _DAY_NUMBERS.find(text[at - 1]), patterns.MORE_DAYS.match(text, at)
    named = [_DAY_NUMBERS.index(sign) for sign in found[0] if sign in _DAY_NUMBERS] if found else []
    if found is None or before < 0 or any(one >= other for one, other in pairwise([before, *named])):
        return set(), at
    return set(named), found.end()


def _month_day(parts: TimeParts, text: str, at: int) -> int:
    monthly = parts.rule is not None and parts.rule.unit == "month"
    if (parts.has_day and not parts.next_month) or parts.spans or not (monthly or parts.rule is None):
        return at
    if parts.month_day is not None or (parts.rule is not None and parts.rule.which):
        return at
    if found := patterns.MONTH_END.match(text, at):
        day, is_rule = LAST_DAY, bool(found["lead"] or found["every"] or found["alone_every"])
        parts.next_month = parts.next_month or bool(found["next"] or found["alone_next"])
    elif monthly and (found := patterns.LAST_OF_RULE.match(text, at)):
        day, is_rule = LAST_DAY, True
    elif (found := patterns.MONTH_DAY.match(text, at)) and _names_day(found, monthly):
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


def _nth_weekday(parts: TimeParts, text: str, at: int) -> int:
    """ "every first monday of the month", "the last friday of every month", "every 2 months on the third tuesday"."""
    monthly = parts.rule is not None and parts.rule.unit == "month"
    if parts.has_day or parts.spans or not (monthly or parts.rule is None) or (parts.rule and parts.rule.which):
        return at
    if (found := patterns.NTH_WEEKDAY.match(text, at)) is None:
        return at
    which, day = patterns.ORDINALS.of(found["which"]), patterns.WEEKDAYS.of(found["weekday"])
    # "every second monday" is every other one for most people.
    if not (monthly or found["every"] or (found["lead"] and (found["month"] or which in (1, LAST)))):
        return at
    if not which:
        raise BadTime("Not every month has a fifth one. Say: every last friday of the month at 9.")
    count = parts.rule.count if parts.rule else 1
    parts.rule = Recurrence(unit="month", count=count, weekdays=(day,), which=which)
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


def _date(parts: TimeParts, text: str, at: int) -> int:
    if parts.has_day or parts.spans:
        return at
    for pattern in (patterns.ISO, patterns.DOTTED, patterns.CHINESE_DATE, patterns.DAY_MONTH, patterns.MONTH_NAME_DAY):
        if (found := pattern.match(text, at)) is None:
            continue
        said = found.groupdict()
        month = int(said["month"]) if said.get("month") else patterns.MONTHS.of(said["name"])
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


def _relative_day(parts: TimeParts, text: str, at: int) -> int:
    if parts.spans:
        return at
    if parts.weekday is not None and not parts.next_week and (found := patterns.NEXT_WEEK.match(text, at)):
        parts.next_week = True
        return found.end()
    if parts.weekday is not None or (parts.has_day and not parts.next_week):
        return at
    if found := patterns.WEEKDAY.match(text, at):
        parts.weekday, following = patterns.WEEKDAYS.of(found["weekday"]), found["next"] or found["behind"]
        parts.after_today = bool(following)
        parts.next_week = parts.next_week or (found["next"] or "").startswith("下")
        parts.is_short = len(found[0]) <= SHORT and found[0].isascii()
        return found.end()
    if parts.next_week:
        return at
    if night := patterns.NIGHTS.match(text, at):
        parts.offset, parts.part_of_day = night[0], _EVENING
        return night[1]
    if day := patterns.DAYS.match(text, at):
        parts.offset, end = day
        return end
    if parts.rule is None and (found := patterns.NEXT_WEEK.match(text, at)):
        parts.next_week = True
        return found.end()
    if found := patterns.NEXT_UNIT.match(text, at):
        unit = patterns.UNITS.of(found["unit"])
        parts.next_month = unit == "month" and parts.rule is None
        if not parts.next_month:
            parts.spans.append((1, unit))
        return found.end()
    return at


def _time(parts: TimeParts, text: str, at: int) -> int:
    if any(unit in ("second", "minute", "hour") for _, unit in parts.spans):
        return at
    if parts.part_of_day is None and (part := patterns.PARTS_OF_DAY.match(text, at)):
        parts.part_of_day = time.fromisoformat(part[0])
        return part[1]
    if parts.clock is not None:
        return at
    dotted: tuple[re.Pattern[str], ...] = (patterns.DOTTED_TIME,) if parts.has_day or parts.rule else ()
    for pattern in (*patterns.TIMES, *dotted):
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
            more = patterns.PARTS_OF_HOUR.of(said["part"]) if said.get("part") else 0
            more = patterns.PARTS_BEHIND.of(said["behind"]) if said.get("behind") else more
            parts.clock = _moved(named, more)
            return found.end()
    if (parts.has_day or parts.rule) and (found := patterns.LAST_HOUR.match(text, at)):
        parts.clock = _time_of(int(found["hour"]), 0, "", found[0])
        return found.end("hour")
    if moment := patterns.NAMED_TIMES.match(text, at):
        parts.clock = time.fromisoformat(moment[0])
        return moment[1]
    return at


def _moved(at: time, minutes: int) -> time:
    """A time of day some minutes later, or earlier."""
    return (datetime.combine(date.min.replace(day=2), at) + timedelta(minutes=minutes)).time()


def _half(said: Mapping[str, str | None]) -> str:
    """ "am", "pm", "evening", "night" or ""."""
    if before := said.get("before"):
        return "pm" if before == "中午" else patterns.HALF.of(before)
    half = said.get("half")
    return patterns.HALF.of(half) if half else ""


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


def _number(text: str | None) -> int:
    said = (text or "1").strip()
    return int(said) if said.isdecimal() else patterns.NUMBERS.of(said)


_READERS: Final[tuple[Callable[[TimeParts, str, int], int], ...]] = (
    _span,
    _date,
    _nth_weekday,
    _month_day,
    _rule,
    _relative_day,
    _time,
)
