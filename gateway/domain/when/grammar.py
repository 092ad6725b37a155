"""From words to the parts of a time: a span, a rule, a day, a time of day, a time zone.

Each reader of `_READERS` looks at one place of a text. It notes on `TimeParts` what is said there, or says False if
that has no place beside the parts that were read before. `scan` lets them read one after another.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, time, timedelta, timezone, tzinfo
from functools import partial
from typing import Final, cast

from msgspec import Struct, field

from gateway.domain.recurrence import MOST_TIMES, WEEKDAYS, WORKDAYS, Recurrence, Unit, zone_named
from gateway.runtime.patterns import late

EXACT: Final = {"second": 1, "minute": 60, "hour": 3_600}
_EVENING: Final = time(20)  # "tonight"
_EARLY: Final = 5  # an hour before this one is at night, not in the evening
_HOURS: Final = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_TENS: Final = {
    "fifteen": 15,
    "twenty": 20,
    "twenty-five": 25,
    "thirty": 30,
    "forty": 40,
    "forty-five": 45,
    "fifty": 50,
    "sixty": 60,
}
_NUMBERS: Final = {"an": 1, "a": 1, **_TENS, **{word: number for number, word in enumerate(_HOURS, 1)}}
_ORDINALS: Final = {
    "first": 1,
    "1st": 1,
    "second": 2,
    "2nd": 2,
    "third": 3,
    "3rd": 3,
    "fourth": 4,
    "4th": 4,
    "last": -1,
}
_UNITS: Final = {"s": "second", "mo": "month", "m": "minute", "h": "hour", "d": "day", "w": "week", "y": "year"}
_PARTS_OF_DAY: Final = {"morning": time(9), "afternoon": time(15), "evening": time(19), "night": time(21)}
_DAYS: Final = {"tonight": 0, "today": 0, "tomorrow": 1, "the day after tomorrow": 2}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_WORDS: Final = "|".join(sorted(_NUMBERS, key=len, reverse=True))
_UNIT: Final = r"(?:seconds?|secs?|s|months?|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w|years?|y)(?![a-z])"
_SPAN: Final = rf"(?:half\s+an\s+hour|\d{{1,3}}h[0-5]\d(?![\d:a-z])|(?:\d{{1,9}}\s*|(?:{_WORDS})\s+){_UNIT})"
SPANS: Final = rf"(?<![\w.,]){_SPAN}(?:(?:\s*,\s*|\s+and\s+|\s+)?{_SPAN}){{0,4}}"
_DAY: Final = "(?:mon|tues|wednes|thurs|fri|satur|sun)days?"
WEEKDAY: Final = rf"(?:{_DAY}|mon|tues?|weds?|thu(?:rs?)?|fri|sat|sun)(?!\w)"
_MONTH: Final = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)(?!\w)\.?"
)
_AND: Final = r"(?:\s*,\s*(?:and\s+)?|\s*&\s*|\s+and\s+)(?:on\s+)?(?:the\s+)?"
NTH: Final = r"\d{1,2}(?:st|nd|rd|th)(?!\w)"
_EVERY: Final = r"(?:(?P<every>every|each)\s+(?:(?P<other>other)\s+)?|(?P<on>on\s+))?"
_HALF: Final = r"\s?(?P<half>[ap])\.?m\b\.?"
_NO_AMOUNT: Final = (
    r"(?![\w:/]|[.,]\d|\s?[-–]\s?\d|\s?[%€$£]|\s+(?:percent|euros?|dollars?|people|minutes?|hours?|days?)\b)"
)
# Abbreviations that mean several zones, or one zone in a part of the year.
_UNCLEAR_ZONE: Final = (
    "[pmce][sd]t|ak[sd]t|a[ecw][sd]t|nz?[sd]t|ist|bst|cest|cet|eest|eet|msk|jst|kst|sgt|hkt|brt|sast|hst|(?-i:[PMCE]T"
    "|[A-Z]{2,4}[SD]T)|(?:pacific|mountain|central|eastern|local)(?: standard| daylight)? time|(?-i:[A-Z][a-z]+) time"
)
_pattern = partial(late, flags=re.IGNORECASE)
_GAP: Final = re.compile(r"\s*,?\s*")
_ONE_SPAN: Final = _pattern(_SPAN)
_FRENCH_CLOCK: Final = re.compile(r"\d{1,2}h[0-5]\d", re.IGNORECASE)  # alone, "9h30" is a time of day for many
_ONE_DAY: Final = _pattern(WEEKDAY)


class BadTime(ValueError):
    """A time that cannot be, as a sentence for people."""


class TimeParts(Struct, kw_only=True):
    """The parts of a time that were read so far."""

    spans: list[tuple[int, str]] = field(default_factory=list)
    rule: Recurrence | None = None
    month_day: int | None = None
    day: date | None = None  # of the year 4: of the next year in which it is yet to come
    offset: int | None = None
    weekday: int | None = None
    is_next: bool = False  # "next friday", which may be in this week or in the one after it
    next_week: bool = False
    clock: time | None = None
    part_of_day: time | None = None  # "in the evening", as the time that this means alone
    zone: tzinfo | None = None

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
        """Whether the time is after midnight, but belongs to the day before: "tonight at 2"."""
        part, at = self.part_of_day, self.at
        return part is not None and at is not None and part.hour >= 19 and at.hour < _EARLY

    @property
    def has_day(self) -> bool:
        """Whether a day was read."""
        return (self.month_day, self.day, self.offset, self.weekday) != (None,) * 4

    @property
    def takes_clock(self) -> bool:
        """Whether a time of day may be added."""
        by_clock = (self.rule and self.rule.is_exact) or any(unit in EXACT for _, unit in self.spans)
        return self.clock is None and not by_clock

    @property
    def is_whole(self) -> bool:
        """Whether these are a time: "on the 3rd" may go on with "floor", and "next week" names no day."""
        if (self.month_day and self.at is None) or (self.next_week and self.weekday is None):
            return False
        by_night = self.rule is not None and self.rule.weekdays and self.is_by_night  # on the days after those
        return not by_night and bool(self.at or self.spans or self.rule or self.has_day)


def scan(text: str, at: int = 0) -> tuple[TimeParts, int]:
    """The parts that stand one after another from here on, and where they end. Raises BadTime."""
    parts, end = TimeParts(), at
    while True:
        gap = _GAP.match(text, end)
        begin = gap.end() if gap is not None and end > at else end
        for pattern, take in _READERS:
            if (found := pattern.match(text, begin)) is not None and take(parts, found):
                end = found.end()
                break
        else:
            return parts, end


def _number(said: str) -> int:
    said = said.strip().lower()
    return int(said) if said.isdecimal() else _NUMBERS[said]


def _unit(said: str) -> str:
    return _UNITS["mo" if said.lower().startswith("mo") else said[0].lower()]


def _said(found: re.Match[str]) -> dict[str, str]:
    """The groups that say something. A pattern names one twice by an underscore behind it."""
    return {name.rstrip("_"): value.lower() for name, value in found.groupdict().items() if value}


# -- the readers ---------------------------------------------------------------------------------


def _spans(parts: TimeParts, found: re.Match[str]) -> bool:
    spans = [_span(each[0].lower()) for each in _ONE_SPAN.finditer(found["spans"])]
    is_bare = not found["before"] and not found["behind"]  # "two hours" amid a text is nothing to be reminded after
    if is_bare and (found.start() or not found[0][0].isdecimal() or any(unit not in EXACT for _, unit in spans)):
        return False
    if is_bare and _FRENCH_CLOCK.fullmatch(found["spans"]):
        return False
    if parts.spans or parts.rule or parts.has_day or parts.at:
        return False
    parts.spans = spans
    return True


def _span(said: str) -> tuple[int, str]:
    if said.startswith("half"):
        return 30, "minute"
    if both := re.fullmatch(r"(\d+)h(\d\d)", said):
        return int(both[1]) * 60 + int(both[2]), "minute"
    number = cast("re.Match[str]", re.match(r"\d+|\S+\s", said))[0]
    return _number(number), _unit(said[len(number) :].strip())


def _every(parts: TimeParts, found: re.Match[str]) -> bool:
    """ "every 2 hours", "every other day", "daily", "every evening"."""
    said = _said(found)
    if parts.rule or parts.spans or parts.part_of_day:
        return False
    if "part" in said:
        parts.rule, parts.part_of_day = Recurrence(unit="day"), _PARTS_OF_DAY[said["part"]]
        return True
    unit, count = _unit(said["unit"]), 2 if "other" in said else _number(said.get("number", "1"))
    if unit == "second":
        raise BadTime("I do not repeat anything more often than once a minute.")
    if not 1 <= count <= MOST_TIMES:
        raise BadTime(f'After "every" I understand numbers from 1 to {MOST_TIMES:,}, as in: every 2 hours.')
    parts.rule = Recurrence(unit=cast("Unit", unit), interval=count)
    return True


def _weekdays(parts: TimeParts, found: re.Match[str]) -> bool:
    """ "every monday and thursday", "on mondays", "weekdays", "every 2 weeks on tuesday"."""
    rule, said = parts.rule, _said(found)
    if parts.spans or parts.has_day or (rule and (rule.unit != "week" or rule.weekdays or "days" not in said)):
        return False
    named = [each[0].lower() for each in _ONE_DAY.finditer(said.get("days", ""))]
    if not ("every" in said or (rule and "on" in said) or all(day.endswith("s") for day in named)):
        return False
    codes = {day[:2].upper() for day in named}
    days = tuple(day for day in WEEKDAYS if day in codes) or (WEEKDAYS[5:] if "weekend" in said else WORKDAYS)
    parts.rule = Recurrence(unit="week", interval=rule.interval if rule else 1 + ("other" in said), weekdays=days)
    return True


def _of_month(parts: TimeParts, found: re.Match[str]) -> bool:
    """ "every last friday of the month", "on the 1st and 15th of every month", "every month on the last day"; also "on
    the 15th". "Every second monday" is every other one for most people, so it is none of these."""
    rule, said = parts.rule, _said(found)
    numbers = tuple(sorted({int(each) for each in re.findall(r"\d+", said.get("numbers", ""))}))
    which = _ORDINALS[said.get("which", "last")]
    if parts.spans or parts.has_day or (rule and (rule.unit != "month" or rule.weekdays or rule.month_days)):
        return False
    if "every" in said:
        again = "this" in said or "of" in said or ("weekday" in said and which in (1, -1))
    else:
        again = (rule is not None or "of" in said) and "this" not in said
    if "every" in said and (rule or not again):
        return False
    if not all(1 <= number <= 31 for number in numbers):
        raise BadTime("The days of a month have the numbers from 1 to 31.")
    if not again:
        is_one = "this" not in said and "on" in said and len(numbers) == 1
        parts.month_day = numbers[0] if is_one else None
        return is_one
    day = said.get("weekday", "")[:2].upper()
    made = Recurrence(
        unit="month",
        interval=rule.interval if rule else 1,
        month_days=numbers or ((which,) if "day" in said else ()),
        weekdays=WORKDAYS if "workday" in said else (f"{which}{day}",) if day else (),
        places=(which,) if "workday" in said else (),
    )
    parts.rule = Recurrence.parse(str(made))
    return True


def _date(parts: TimeParts, found: re.Match[str]) -> bool:
    """ "2027-01-31", "on 5 December", "May 2nd, 2027", "every year on 24 December"."""
    rule, said = parts.rule, _said(found)
    year, day = int(said.get("year", 0)), int(said["day"])
    again = "every" in said or rule is not None
    if parts.has_day or parts.spans or (again and year) or (rule and (rule.unit != "year" or rule.months)):
        return False
    month = int(said["number"]) if "number" in said else _MONTHS.index(said["name"][:3]) + 1
    try:
        parts.day = date(year or 4, month, day)  # the year 4 has a 29 February
    except ValueError:
        raise BadTime(f"There is no day {day} in the month {month}{f' of {year}' if year else ''}.") from None
    if again:
        made = Recurrence(unit="year", interval=rule.interval if rule else 1, months=(month,), month_days=(day,))
        parts.rule, parts.day = Recurrence.parse(str(made)), None
    return True


def _relative(parts: TimeParts, found: re.Match[str]) -> bool:
    """ "tomorrow", "friday", "next monday", "next week on friday"."""
    said = _said(found)
    others = parts.spans or parts.rule or parts.month_day or parts.day or parts.offset is not None
    if others or (parts.weekday is not None and ("week" not in said or parts.is_next)):
        return False
    if parts.next_week and ("weekday" not in said or "next" in said):
        return False
    if "week" in said:
        parts.next_week = True
    elif "day" in said:
        day = " ".join(said["day"].split())
        parts.offset, parts.part_of_day = _DAYS[day], _EVENING if day == "tonight" else parts.part_of_day
    else:
        parts.weekday, parts.is_next = WEEKDAYS.index(said["weekday"][:2].upper()), "next" in said
    return True


def _part_of_day(parts: TimeParts, found: re.Match[str]) -> bool:
    """ "in the morning", "at night"; "this evening"; behind a day also "morning" alone."""
    said, has_day = _said(found), bool(parts.has_day or parts.rule)
    how = said.get("how", "")
    if (
        parts.part_of_day
        or any(unit in EXACT for _, unit in parts.spans)
        or (how in ("", "this") and has_day is bool(how))
    ):
        return False
    parts.part_of_day = _PARTS_OF_DAY[said["part"]]
    parts.offset = 0 if how == "this" else parts.offset
    return True


def _clock(parts: TimeParts, found: re.Match[str]) -> bool:
    said = _said(found)
    if not parts.takes_clock or ("alone" in said and not (parts.has_day or parts.rule)):
        return False
    hour = {"noon": 12, "midday": 12, "midnight": 0}.get(said.get("named", ""))
    hour, half = _number(said["hour"]) if hour is None else hour, said.get("half")
    minute, second = int(said.get("minute", 0)), int(said.get("second", 0))
    if (half and not 1 <= hour <= 12) or hour > 24 or max(minute, second) > 59 or (hour == 24 and minute):
        raise BadTime(f'"{found[0].strip()}" is not a time of day. Use 00:00 to 23:59.')
    parts.clock = time(hour % 12 + 12 * (half == "p") if half else hour % 24, minute, second)
    return True


def _zone(parts: TimeParts, found: re.Match[str]) -> bool:
    """The time zone behind a time of day. Raises BadTime for one that may be several."""
    if parts.clock is None or parts.zone is not None:
        return False
    said = _said(found)
    if "unclear" in said:
        raise BadTime(
            f'"{found["unclear"]}" may mean several time zones. Name a place or the hours from UTC, such as: tomorrow '
            "at 9 America/Los_Angeles, or: tomorrow at 9 UTC-8."
        )
    if "place" in said:
        parts.zone = zone_named(found["place"])
        if parts.zone is None:
            raise BadTime(f'There is no time zone "{found["place"]}". Europe/Berlin is an example of a time zone.')
        return True
    hours, minutes = int(said.get("hours", 0)), int(said.get("minutes", 0))
    if hours > 14 or minutes > 59:
        raise BadTime(f'"{found[0].strip()}" is not a time zone: I know the zones from UTC-12:00 to UTC+14:00.')
    ahead = timedelta(hours=hours, minutes=minutes) * (-1 if said.get("sign") == "-" else 1)
    named = zone_named(f"Etc/GMT{'-' if ahead > timedelta() else '+'}{hours}") if hours and not minutes else None
    parts.zone = named or (timezone(ahead) if ahead else zone_named("UTC"))
    return True


_Reader = Callable[[TimeParts, "re.Match[str]"], bool]
_READERS: Final[tuple[tuple[re.Pattern[str], _Reader], ...]] = tuple(
    (_pattern(pattern), take)
    for pattern, take in (
        (
            rf"(?:(?P<before>in|after)\s+)?(?P<spans>{SPANS})(?![\w:])(?:\s+(?P<behind>from\s+now|later)(?!\w))?"
            rf"(?!\s+(?:before|after|past|ago|to\s+(?:\d|{_WORDS}))(?!\w))",
            _spans,
        ),
        (
            rf"(?:(?P<every>every|each)\s+|(?P<on>on\s+)?the\s+)(?:(?P<which>{'|'.join(_ORDINALS)})\s+"
            rf"(?:(?P<weekday>{WEEKDAY})|(?P<workday>weekday|work(?:ing\s+)?day)|(?P<day>day))(?!\w)"
            rf"|(?P<numbers>{NTH}(?:{_AND}{NTH})*))"
            r"(?:\s+of\s+(?:(?P<of>(?:every|each)\s+month)|(?P<this>the\s+month))(?!\w))?",
            _of_month,
        ),
        (
            rf"(?:every|each)\s+(?:(?:(?P<other>other|second)\s+|(?P<number>\d{{1,9}}|{_WORDS})\s*|(?!sec))(?P<unit>{_UNIT})"
            rf"|(?P<part>{'|'.join(_PARTS_OF_DAY)}))(?!\w)|(?P<unit_>hour|dai|week|month|year)ly(?!\w)",
            _every,
        ),
        (
            rf"{_EVERY}(?:(?P<work>(?:week|work)days?|mon(?:day)?s?\s?(?:to|through|-|–)\s?fri(?:day)?s?)(?!\w)"
            rf"|(?P<weekend>weekends?)(?!\w)|(?P<days>{WEEKDAY}(?:{_AND}{WEEKDAY})*))",
            _weekdays,
        ),
        (
            r"(?:on\s+)?(?P<year>\d{4})-(?P<number>\d{1,2})-(?P<day>\d{1,2})(?!\d)(?:T(?=\d))?"
            r"|(?:(?P<every>every)\s+|on\s+)?(?:the\s+)?(?:"
            rf"(?P<day_>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<name>{_MONTH})|(?P<name_>{_MONTH})\s+(?:the\s+)?"
            r"(?P<day__>\d{1,2})(?:st|nd|rd|th)?(?![\w:]))(?:,?\s+(?P<year_>\d{4})(?![\d:]))?",
            _date,
        ),
        (
            r"(?P<day>tonight|today|tomorrow|the\s+day\s+after\s+tomorrow)(?!\w)|(?P<week>next\s+week)(?!\w)"
            rf"|(?P<lead>(?P<next>next\s+)|(?:this|on|by)\s+)?(?P<weekday>{_DAY}(?!\w)"
            rf"|(?(lead){WEEKDAY}|{WEEKDAY}(?=\s+(?:at\s+\w|\d{{1,2}}(?::\d|\s?[ap]m)))))",  # not "sun cream"
            _relative,
        ),
        (rf"(?:(?P<how>in\s+the|this|at(?=\s+night))\s+)?(?P<part>{'|'.join(_PARTS_OF_DAY)})(?!\w)", _part_of_day),
        (
            rf"(?P<at>(?:at|by|around)\s+|@\s?)?(?:(?P<hour>\d{{1,2}}):(?P<minute>\d{{2}})(?::(?P<second>\d{{2}})(?:\.\d+)?)?"
            rf"(?:{_HALF})?(?![\d:])|(?P<hour_>\d{{1,2}})(?:\.(?P<minute_>\d{{2}}))?{_HALF.replace('half', 'half_')}"
            rf"|(?P<hour__>\d{{1,2}}|{'|'.join(_HOURS)})(?:\s+o'?clock(?!\w)|(?(at){_NO_AMOUNT}|(?!)))"
            r"|(?P<named>noon|midday|midnight)(?!\w)|(?P<alone>(?P<hour___>\d{1,2}))\s*\Z)",
            _clock,
        ),
        (
            rf"(?P<unclear>{_UNCLEAR_ZONE})(?!\w)|(?P<place>[a-z]+(?:/[a-z][\w+-]*){{1,2}})(?!\w)"
            r"|(?:Z|UTC|GMT)(?:(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?)?(?![\w:])"
            r"|(?P<sign_>[+-])(?P<hours_>\d{2}):?(?P<minutes_>\d{2})(?![\w:])",
            _zone,
        ),
    )
)
