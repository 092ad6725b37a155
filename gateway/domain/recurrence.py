"""Repeated moments in the local time of a zone.

A rule, a first local time and a zone give a row of moments. Each can be computed by its number, so nobody has to walk
through the moments of a year. A local time that a night skips (the clock goes from 02:00 to 03:00) means the first
moment after the gap; one that a night has twice means the first of both.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cached_property
from math import inf
from typing import Final, Literal, Self
from zoneinfo import ZoneInfo, available_timezones

from msgspec import Struct

Unit = Literal["minute", "hour", "day", "week", "month", "year"]

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NAMES: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WORKDAYS: Final = (0, 1, 2, 3, 4)
MOST_TIMES: Final = 1_000  # "every 1,000 weeks" is as far apart as two moments may be
LAST: Final = -1  # of the weekdays of a month
_WHICH: Final = {1: "first", 2: "second", 3: "third", 4: "fourth", LAST: "last"}
_RULE: Final = re.compile(
    rf"(\d{{1,4}}) (minute|hour|day|week|month|year)(?: on (?:({'|'.join(_WHICH.values())}) )?([a-z,]+))?"
)
# The mean length of each unit in the Gregorian calendar.
_SECONDS: Final[dict[Unit, int]] = {
    "minute": 60,
    "hour": 3_600,
    "day": 86_400,
    "week": 604_800,
    "month": 2_629_746,
    "year": 31_556_952,
}


class Recurrence(Struct, frozen=True, kw_only=True):
    """Every `count` units. `weekdays`: of a week only these, 0 is Monday. `which`: of a month the first (1) to fourth
    or the LAST one of its single weekday. A month without the day of the first time has its last day instead."""

    unit: Unit
    count: int = 1
    weekdays: tuple[int, ...] = ()
    which: int = 0

    def __str__(self) -> str:
        which = f"{_WHICH[self.which]} " if self.which else ""
        days = ",".join(WEEKDAYS[day] for day in self.weekdays)
        return f"{self.count} {self.unit}{f' on {which}{days}' if days else ''}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `str(rule)`. Raises ValueError."""
        found = _RULE.fullmatch(text)
        if found is None:
            raise ValueError(f"not a recurrence: {text!r}")
        unit: Unit = found[2]  # type: ignore[assignment]  # the pattern knows the units
        which = next((number for number, name in _WHICH.items() if name == found[3]), 0)
        days = tuple(WEEKDAYS.index(day) for day in found[4].split(",")) if found[4] else ()
        return cls(unit=unit, count=int(found[1]), weekdays=days, which=which)

    @property
    def said(self) -> str:
        """The rule in words: "every weekday", "every 2 weeks on Monday"."""
        if self.unit == "week" and self.count == 1 and self.weekdays == WORKDAYS:
            return "every weekday"
        days = " and ".join(", ".join(_NAMES[day] for day in self.weekdays).rsplit(", ", 1))
        if self.unit == "week" and self.count == 1 and days:
            return f"every {days}"
        if self.which:
            days = f"the {_WHICH[self.which]} {days}"
        often = self.unit if self.count == 1 else f"{self.count} {self.unit}s"
        return f"every {often}{f' on {days}' if days else ''}"


def utc_of(local: datetime, zone: tzinfo) -> float:
    """Seconds since the epoch of a naive local time. Raises OverflowError beyond the calendar."""
    try:
        second, first = (local.replace(tzinfo=zone, fold=fold).timestamp() for fold in (1, 0))
    except ValueError as error:  # the year 0 or 10000, in some zone
        raise OverflowError(str(error)) from None
    return first if second >= first else _after_gap(second, first, zone)


def _after_gap(early: float, late: float, zone: tzinfo) -> float:
    """The first moment after a gap, between a moment before the gap and one behind it."""
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
    """The time zone of an IANA name; None: there is none."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # KeyError covers ZoneInfoNotFoundError
        return None


def zone_called(said: str) -> str | None:
    """The IANA name of a zone that a person calls by it or by a city alone: "europe/berlin", "New York". It looks
    through the machine's list of zones. None: there is none."""
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
        """The moment of this number, from 0 (seconds since the epoch); infinite beyond the calendar."""
        try:
            if self.rule.unit in ("minute", "hour"):
                return utc_of(self.start, self.zone) + number * self.rule.count * _SECONDS[self.rule.unit]
            return utc_of(self.local(number), self.zone)
        except (OverflowError, ValueError):
            return inf

    def count(self, until: float) -> int:
        """Return the number of moments up to `until`, that one included."""
        if self.nth(0) > until:
            return 0
        days = len(self._days) if self.rule.unit == "week" else 1
        number = max(0, int((until - self.nth(0)) * days / (_SECONDS[self.rule.unit] * self.rule.count)))
        while number and self.nth(number) > until:
            number -= 1
        while self.nth(number + 1) <= until:
            number += 1
        return number + 1

    def after(self, moment: float) -> float | None:
        """The first moment after this one; None: there is none before the calendar ends."""
        following = self.nth(self.count(moment))
        return None if following == inf else following

    def local(self, number: int) -> datetime:
        """The local time of a number, for the units of the calendar."""
        rule, start = self.rule, self.start
        if rule.unit == "day":
            return start + timedelta(days=number * rule.count)
        if rule.unit == "week":
            week, place = divmod(self._first_place + number, len(self._days))
            monday = start - timedelta(days=start.weekday())
            return monday + timedelta(days=7 * week * rule.count + self._days[place])
        months = start.year * 12 + start.month - 1 + number * rule.count * (12 if rule.unit == "year" else 1)
        year, month = divmod(months, 12)
        first, last = monthrange(year, month + 1)
        day = _day_of(rule, first, last) if rule.which else min(start.day, last)
        return start.replace(year=year, month=month + 1, day=day)

    @cached_property
    def _days(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.rule.weekdays))) or (self.start.weekday(),)

    @cached_property
    def _first_place(self) -> int:
        return sum(day < self.start.weekday() for day in self._days)


def _day_of(rule: Recurrence, first: int, last: int) -> int:
    """The day of the rule's weekday in a month that begins with the weekday `first` and has `last` days."""
    (weekday,) = rule.weekdays
    earliest = 1 + (weekday - first) % 7
    return earliest + 7 * ((last - earliest) // 7 if rule.which == LAST else rule.which - 1)
