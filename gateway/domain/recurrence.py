"""Repeated moments in the local time of a zone.

A rule of iCalendar, a first local time and a zone give a row of moments. A local time that a night skips (the clock
goes from 02:00 to 03:00) means the first moment after the gap; one that a night has twice means the first of both.
"""

from __future__ import annotations

import re
from calendar import day_name, month_name
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from importlib import import_module
from itertools import islice, pairwise, product, takewhile
from math import inf
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias, cast
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Struct

from gateway.domain.wording import counted
from gateway.runtime.structs import replace

if TYPE_CHECKING:
    from gateway.domain.cron import Cron, CronTable

Rule: TypeAlias = "Recurrence | Cron"  # what comes again; `str(rule)` is what is stored
Moments: TypeAlias = "Timetable | CronTable"
Unit = Literal["minute", "hour", "day", "week", "month", "year"]

WEEKDAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
WORKDAYS: Final = WEEKDAYS[:5]
MOST_COUNTED: Final = 1_000  # of the moments of a cron expression that passed
MOST_TIMES: Final = 1_000  # "every 1,000 weeks" is as far apart as two moments may be
_FREQUENCIES: Final[dict[str, Unit]] = {
    "MINUTELY": "minute",
    "HOURLY": "hour",
    "DAILY": "day",
    "WEEKLY": "week",
    "MONTHLY": "month",
    "YEARLY": "year",
}
_SECONDS: Final[dict[Unit, int]] = {"minute": 60, "hour": 3_600}  # units that the clock counts, not the calendar
_WHICH: Final = {1: "first", 2: "second", 3: "third", 4: "fourth", 5: "fifth", -1: "last"}
_LONGEST_MONTHS: Final = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_END_OF_DAY: Final = "T235959"


def _list(value: str) -> str:
    return f"(?:{value})(?:,(?:{value}))*"


# The parts of a rule that are kept: what they may say, by their names in RFC 5545.
_PARTS: Final = {
    "FREQ": "|".join(_FREQUENCIES),
    "INTERVAL": r"[1-9]\d{0,2}|1000",
    "COUNT": r"[1-9]\d{0,2}|1000",
    "UNTIL": r"\d{8}(?:T\d{6})?",
    "BYMONTH": _list("[1-9]|1[0-2]"),
    "BYMONTHDAY": _list(r"-1|[1-9]|[12]\d|3[01]"),
    "BYDAY": _list(rf"(?:\+?[1-5]|-1)?(?:{'|'.join(WEEKDAYS)})"),
    "BYSETPOS": _list("[1-4]|-1"),
    "BYHOUR": _list(r"1?\d|2[0-3]"),
    "BYMINUTE": _list(r"[1-5]?\d"),
    "WKST": "MO",
}
# What to write in the place of a value that is often written and not kept.
_HINTS: Final = {
    "UNTIL": "UNTIL is the person's local time without a Z, such as UNTIL=20261210 or UNTIL=20261210T180000",
    "WKST": "weeks begin on Monday, so leave WKST out",
    "INTERVAL": f"INTERVAL is a number from 1 to {MOST_TIMES:,}",
    "COUNT": f"COUNT is a number from 1 to {MOST_TIMES:,}",
    "BYMONTHDAY": "BYMONTHDAY has numbers from 1 to 31, or -1 for the last day",
}
# Rules as they were stored before: "2 week on mon,thu", "1 month on last fri".
_OLD: Final = re.compile(
    r"(\d{1,4}) (minute|hour|day|week|month|year)(?: on (?:(first|second|third|fourth|last) )?([a-z,]+))?"
)


class Recurrence(Struct, frozen=True, kw_only=True):
    """A rule of iCalendar (RFC 5545, RRULE), as `Recurrence.parse` checked it. `weekdays`: "MO", or with the number
    that it has in a month "1MO", "-1MO". `places`: which days of those that fit. A day of a month beyond the 28th
    means the last day of a shorter month."""

    unit: Unit
    interval: int = 1
    months: tuple[int, ...] = ()
    month_days: tuple[int, ...] = ()
    weekdays: tuple[str, ...] = ()
    places: tuple[int, ...] = ()
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    times: int | None = None
    until: str = ""  # local time, as iCalendar writes it

    def __str__(self) -> str:
        parts: dict[str, object] = {
            "FREQ": next(name for name, unit in _FREQUENCIES.items() if unit == self.unit),
            "INTERVAL": self.interval if self.interval > 1 else "",
            "COUNT": self.times or "",
            "UNTIL": self.until,
            **{name: ",".join(map(str, getattr(self, field))) for name, field in _LISTS.items()},
        }
        return ";".join(f"{name}={value}" for name, value in parts.items() if value)

    @classmethod
    def parse(cls, text: str, start: datetime | None = None) -> Self:
        """Read `str(rule)`, an iCalendar rule of which every part is understood, or a rule as it was stored before.
        `start`: its first local time, if known. Raises ValueError with a sentence."""
        if old := _OLD.fullmatch(text):
            rule = cls._old(old)
        else:
            rule = cls._read(text.strip().upper().removeprefix("RRULE:"))
            if wrong := next(rule._contradictions(), ""):
                raise ValueError(wrong)
        return rule._on_last_days(start)

    @classmethod
    def _read(cls, text: str) -> Self:
        said: dict[str, str] = {}
        for part in text.strip(";").split(";"):
            name, _, value = part.partition("=")
            if name in said or not re.fullmatch(_PARTS.get(name, "(?!)"), value):
                hint = "it has that twice" if name in said else _HINTS.get(name, f"it may have: {', '.join(_PARTS)}")
                raise ValueError(f"I cannot keep {part[:40]!r} of this rule; {hint}.")
            said[name] = value
        if "FREQ" not in said:
            raise ValueError("A rule begins with how often it comes, such as FREQ=WEEKLY.")
        until = said.get("UNTIL", "")
        if until:
            until += "" if "T" in until else _END_OF_DAY
            datetime.fromisoformat(until)
        lists = {
            field: tuple(each if name == "BYDAY" else int(each) for each in _sorted(said[name].replace("+", ""), name))
            for name, field in _LISTS.items()
            if name in said
        }
        rule = cls(
            unit=_FREQUENCIES[said["FREQ"]],
            interval=int(said.get("INTERVAL", 1)),
            times=int(said["COUNT"]) if "COUNT" in said else None,
            until=until,
            **cast("dict[str, tuple[int, ...]]", lists),  # type: ignore[arg-type]  # the weekdays among them are texts
        )
        by_weekday = rule.unit == "day" and rule.interval == 1 and rule.weekdays and not rule.months
        return replace(rule, unit="week") if by_weekday else rule

    @classmethod
    def _old(cls, found: re.Match[str]) -> Self:
        days = tuple(day[:2].upper() for day in found[4].split(",")) if found[4] else ()
        if not set(days) <= set(WEEKDAYS):
            raise ValueError(f"not a recurrence: {found[0]!r}")
        which = next((str(number) for number, name in _WHICH.items() if name == found[3]), "")
        weekdays = tuple(f"{which}{day}" for day in days)
        return cls(unit=cast(Unit, found[2]), interval=int(found[1]), weekdays=weekdays)

    def _contradictions(self) -> Iterator[str]:
        """Sentences about parts that say nothing together, or what no words of ours say."""
        monthly = self.unit in ("month", "year")
        numbered = any(len(day) > 2 for day in self.weekdays)
        by_day = self.weekdays or self.month_days
        if self.unit in _SECONDS and (by_day or self.months or self.hours or self.minutes or self.places):
            yield "HOURLY and MINUTELY take no BY… part. Use FREQ=DAILY or WEEKLY with BYHOUR and BYMINUTE."
        if self.times and self.until:
            yield "A rule ends by COUNT or by UNTIL, not by both."
        if not monthly and (self.month_days or self.places or numbered):
            yield "BYMONTHDAY, BYSETPOS and numbered days such as 1MO need FREQ=MONTHLY or FREQ=YEARLY."
        if self.unit == "day" and self.weekdays:
            yield "FREQ=DAILY takes no BYDAY with INTERVAL or BYMONTH. Use FREQ=WEEKLY."
        if self.unit == "year" and by_day and not self.months:
            yield "FREQ=YEARLY needs BYMONTH with its days."
        if self.unit == "week" and self.months and self.interval > 1:
            yield "FREQ=WEEKLY takes no BYMONTH with INTERVAL."
        if self.places and (numbered or self.month_days not in ((), *_LAST_DAYS) or not by_day):
            yield "BYSETPOS needs BYDAY with plain days, and no BYMONTHDAY."
        if self.places and (len(self.hours) > 1 or len(self.minutes) > 1 or (self.unit == "year" and self.months[1:])):
            yield "BYSETPOS works only with one time of day and one month."
        if (self.places or numbered) and self.month_days and self.weekdays:
            yield "BYMONTHDAY works only with plain days of BYDAY, such as BYDAY=FR;BYMONTHDAY=13."
        if bool(self.minutes) != bool(self.hours):
            yield "BYHOUR and BYMINUTE go together, such as BYHOUR=8,20;BYMINUTE=0."
        longest = max((_LONGEST_MONTHS[month - 1] for month in self.months), default=31)
        if self.month_days and min(self.month_days) > longest:
            yield "None of these months has such a day."

    def _on_last_days(self, start: datetime | None) -> Self:
        """The rule with the last day of a month in place of one that the month lacks."""
        if self.unit == "year" and len(self.months) > 1:
            return self
        days, months = self.month_days, self.months
        if not days and not self.weekdays and start is not None and self.unit in ("month", "year") and start.day > 28:
            days, months = (start.day,), months or ((start.month,) if self.unit == "year" else ())
        if len(days) != 1 or days[0] <= 28 or self.weekdays or self.places:
            return self
        return replace(self, months=months, month_days=tuple(range(28, days[0] + 1)), places=(-1,))

    @property
    def is_exact(self) -> bool:
        """Whether it goes by hours or minutes, whatever the clocks do."""
        return self.unit in _SECONDS

    def table(self, start: datetime, zone: tzinfo) -> Timetable:
        """Its moments from a naive local time on."""
        return Timetable(start=start, zone=zone, rule=self)

    @property
    def least_seconds(self) -> float:
        """The shortest time between two of its moments, if it is shorter than a day."""
        if self.is_exact:
            return float(self.interval * _SECONDS[self.unit])
        return least_between(self.hours or (0,), self.minutes or (0,))

    # -- in words ---------------------------------------------------------------------------

    @property
    def said(self) -> str:
        """The whole rule in words: "every weekday", "every month on the 1st and the 15th"."""
        months, days = _and([month_name[each] for each in self.months]), self._days_said
        often = f"every {self.unit if self.interval == 1 else f'{self.interval} {self.unit}s'}"
        if self.unit == "week" and self.interval == 1 and days:
            often, days = ("every weekday" if self.weekdays == WORKDAYS else f"every {days}"), ""
        whole = f"{often}{f' in {months}' if months else ''}{f' on {days}' if days else ''}"
        if self.hours:
            clocks = [f"{hour:02}:{minute:02}" for hour, minute in product(self.hours, self.minutes)]
            whole += f" at {_and(clocks)}"
        if self.times:
            whole += f", {counted(self.times, 'time')} in all"
        if self.until:
            until = datetime.fromisoformat(self.until)
            clock = "" if self.until.endswith(_END_OF_DAY) else f", {until:%H:%M}"
            whole += f", until {until.day} {until:%b %Y}{clock}"
        return whole

    @property
    def _days_said(self) -> str:
        names = [day_name[WEEKDAYS.index(day[-2:])] for day in self.weekdays]
        if self.month_days in _LAST_DAYS and self.places:
            last = self.month_days[-1]
            return "the last day" if last == 31 else f"the {ordinal(last)}, or the last day of a shorter month"
        days = _and([f"the {ordinal(day)}" if day > 0 else "the last day" for day in self.month_days])
        if self.places:
            kinds = {WORKDAYS: "weekday", WEEKDAYS[5:]: "day of the weekend", WEEKDAYS: "day"}
            kind = kinds.get(self.weekdays) or (names[0] if len(names) == 1 else f"of {_and(names)}")
            return _and([f"the {_WHICH[each]} {kind}" for each in self.places])
        if any(len(day) > 2 for day in self.weekdays):
            which = (_WHICH.get(int(day[:-2] or 0)) for day in self.weekdays)
            return _and(
                [f"the {one} {name}" if one else f"each {name}" for one, name in zip(which, names, strict=True)]
            )
        if names and self.unit in ("month", "year"):
            return f"each {_and(names)}{f' that is {days}' if days else ''}"
        return _and(names) or days


def rule_of(text: str, start: datetime | None = None) -> Rule:
    """Read a rule as it was stored, or as a program says it. Raises ValueError with a sentence."""
    is_cron = text.lower().startswith(("cron ", "@")) or ("=" not in text and len(text.split()) in (5, 6))
    if not is_cron or _OLD.fullmatch(text):
        return Recurrence.parse(text, start)
    found: Rule = import_module("gateway.domain.cron").Cron.parse(text)  # few have one
    return found


_LISTS: Final = {
    "BYMONTH": "months",
    "BYMONTHDAY": "month_days",
    "BYDAY": "weekdays",
    "BYSETPOS": "places",
    "BYHOUR": "hours",
    "BYMINUTE": "minutes",
}
_LAST_DAYS: Final = tuple(tuple(range(28, last + 1)) for last in (29, 30, 31))


def _sorted(text: str, name: str) -> list[str]:
    """The values of a list, each once, in the order in which people say them."""
    values = set(text.split(","))
    if name == "BYDAY":
        return sorted(values, key=lambda day: (WEEKDAYS.index(day[-2:]), day))
    return sorted(values, key=lambda value: (int(value) < 0, int(value)))


def least_between(hours: Iterable[int], minutes: Iterable[int]) -> float:
    """The shortest time between two of these times of each day, in seconds."""
    moments = sorted(hour * 3_600 + minute * 60 for hour, minute in product(hours, minutes))
    return float(min(later - one for one, later in pairwise([*moments, moments[0] + 86_400])))


def _and(words: Sequence[str]) -> str:
    return " and ".join(", ".join(words).rsplit(", ", 1))


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 11th."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def utc_of(local: datetime, zone: tzinfo) -> float:
    """Seconds since the epoch of a naive local time. Raises OverflowError beyond the calendar."""
    try:
        second, first = (local.replace(tzinfo=zone, fold=fold).timestamp() for fold in (1, 0))
    except ValueError as error:  # the year 0 or 10000, in some zone
        raise OverflowError(str(error)) from None
    return first if second >= first else _after_gap(second, first, zone)


def _after_gap(early: float, late: float, zone: tzinfo) -> float:
    """The first moment after a gap, between a moment before and one after it."""
    before = datetime.fromtimestamp(early, zone).utcoffset()
    low, high = int(early), int(late)
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return float(high)


def local_of(moment: float, zone: tzinfo) -> datetime:
    """The naive local time of a moment."""
    return datetime.fromtimestamp(moment, zone).replace(tzinfo=None)


def zone_named(name: str) -> tzinfo | None:
    """The time zone with an IANA name; None if there is none."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # KeyError covers ZoneInfoNotFoundError
        return None


def zone_called(said: str) -> str | None:
    """The IANA name of a zone that a person calls by that name or only by a city: "europe/berlin", "New York". Looks
    through the machine's list of zones. None if there is none."""
    wanted = "_".join(said.split()).casefold()
    if wanted == "utc":
        return "UTC"
    names = sorted(available_timezones(), key=lambda name: (name.count("/"), name))
    exact = (name for name in names if name.casefold() == wanted)
    city = (name for name in names if "/" in name and name.rpartition("/")[2].casefold() == wanted)
    return next(exact, None) or next(city, None)


@dataclass(frozen=True, kw_only=True)
class Timetable:
    """The moments of a rule. `start` is naive local time; the first moment is the first from then on."""

    start: datetime
    zone: tzinfo
    rule: Recurrence

    def nth(self, number: int) -> float:
        """The moment of this number, from 0 (seconds since the epoch); infinite if there is none."""
        if self.rule.is_exact:
            return self._exact(number)
        return next(islice(self._walk(), number, None), inf)

    def count(self, until: float) -> int:
        """Return the number of moments up to `until`, that one included."""
        if not self.rule.is_exact:
            return sum(1 for _ in takewhile(lambda moment: moment <= until, self._walk()))
        number = max(0, int((min(until, self._last) - self._exact(0)) // self.rule.least_seconds) + 1)
        return min(number, self.rule.times or number)

    def after(self, moment: float) -> float | None:
        """The first moment after this one; None if there is none before the calendar ends."""
        if not self.rule.is_exact:
            return next((each for each in self._walk() if each > moment), None)
        following = self._exact(self.count(moment))
        return None if following == inf else following

    def passed(self, after: float, until: float) -> tuple[int, float]:
        """How many moments came after one and up to the other, and the last of them."""
        count = self.count(until)
        new = count - self.count(after)
        return new, self.nth(count - 1) if new else after

    def _walk(self) -> Iterator[float]:
        """The moments by the calendar, each once: two local times in a gap are one moment."""
        newest = -inf
        try:
            # By name: most conversations have no reminder that comes again.
            for local in import_module("dateutil.rrule").rrulestr(str(self.rule), dtstart=self.start):
                if (moment := utc_of(local, self.zone)) > newest:
                    yield moment
                    newest = moment
        except OverflowError:
            return

    def _exact(self, number: int) -> float:
        try:
            moment = utc_of(self.start, self.zone) + number * self.rule.least_seconds
        except OverflowError:
            return inf
        return inf if moment > self._last or number >= (self.rule.times or inf) else moment

    @property
    def _last(self) -> float:
        """The end of the rule, or of the calendar."""
        end = datetime.fromisoformat(self.rule.until) if self.rule.until else datetime(9999, 12, 30)
        return utc_of(end, self.zone)
