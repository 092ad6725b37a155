"""Cron expressions: moments that come again by five fields of local time (minute, hour, day, month, weekday).

A time of day that a night skips means the first moment after the gap, and one that a night has twice means the first of
both, as with every rule. An expression for every hour goes by the clock on the wall instead: an hour that comes twice
counts twice, and one that is skipped is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, tzinfo
from itertools import islice, takewhile
from typing import Final, Self

from cronsim import CronSim, CronSimError
from msgspec import Struct

from gateway.domain.recurrence import MOST_COUNTED, least_between, ordinal, utc_of

_WORDS: Final = {
    "@HOURLY": "0 * * * *",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@WEEKLY": "0 0 * * 0",
    "@MONTHLY": "0 0 1 * *",
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
}
_LONGEST: Final = 200  # characters
_EVERY_HOUR: Final = 24
_LISTED: Final = 4  # times of day, in words
_ANY: Final = datetime(2024, 1, 1)
_FIVE: Final = 'minute, hour, day, month and weekday, such as: cron "0 9 * * 1-5"'


class Cron(Struct, frozen=True, kw_only=True):
    """A cron expression, as `Cron.parse` checked it."""

    expression: str

    def __str__(self) -> str:
        return f"cron {self.expression}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `str(cron)`, five fields, or a word such as @daily. Raises ValueError with a sentence."""
        said = " ".join(text[: _LONGEST + 1].upper().split()).removeprefix("CRON").strip()
        fields = _WORDS.get(said, said).split()
        if len(fields) in (6, 7):
            raise ValueError(f"A cron expression here has no seconds and no years, only five fields: {_FIVE}.")
        if len(fields) != 5 or len(said) > _LONGEST:
            raise ValueError(f'"{said[:40]}" is not a cron expression, which has five fields: {_FIVE}.')
        try:
            if len(CronSim(" ".join(fields), _ANY).hours) == _EVERY_HOUR:
                fields[1] = "*"
        except CronSimError as error:
            field = str(error).removeprefix("Bad ").removesuffix("-of-month").replace("day-of-week", "weekday")
            raise ValueError(
                f'The {field} of the cron expression "{said}" is wrong; its five fields are {_FIVE}.'
            ) from None
        return cls(expression=" ".join(fields))

    def table(self, start: datetime, zone: tzinfo) -> CronTable:
        """Its moments from a naive local time on."""
        return CronTable(start=start, zone=zone, expression=self.expression)

    @property
    def least_seconds(self) -> float:
        """The shortest time between two of its moments, as if each day were one of its days."""
        times = CronSim(self.expression, _ANY)
        return least_between(times.hours, times.minutes)

    @property
    def said(self) -> str:
        """The expression in words: "at 09:00 on Monday to Friday"; itself where words could mean another thing."""
        times = CronSim(self.expression, _ANY)
        minute, hour, *days = self.expression.split()
        if len(times.hours) * len(times.minutes) <= _LISTED:
            minute, hour = (",".join(map(str, sorted(each))) for each in (times.minutes, times.hours))
        step = re.fullmatch(r"\*/(\d+)", minute)
        plain = "*" if step and 60 % int(step[1]) == 0 else minute
        if "/" in f"{plain}{hour}{days}" or "*" not in (days[0], days[2]):
            return f"by the cron expression `{self.expression}`"
        words = CronSim(" ".join((minute, hour, *days)), _ANY).explain().replace(" through ", " to ")
        return words[0].lower() + re.sub(r"(\d+)th\b", lambda found: ordinal(int(found[1])), words[1:])


@dataclass(frozen=True, kw_only=True)
class CronTable:
    """The moments of an expression in a zone, none before `start` (naive local time)."""

    start: datetime
    zone: tzinfo
    expression: str

    def after(self, moment: float) -> float | None:
        """The first moment after this one; None if there is none in the next 50 years."""
        return next(self._walk(moment), None)

    def passed(self, after: float, until: float) -> tuple[int, float]:
        """How many moments came after one and up to another, as far as they are counted, and the last of them."""
        found = list(islice(takewhile(lambda each: each <= until, self._walk(after)), MOST_COUNTED))
        if len(found) < MOST_COUNTED:
            return len(found), found[-1] if found else after
        return len(found), utc_of(next(self._by_clock(int(until) + 1, back=True)).replace(tzinfo=None), self.zone)

    def _walk(self, moment: float) -> Iterator[float]:
        newest = max(moment, utc_of(self.start, self.zone) - 1)
        try:
            for each in self._by_clock(newest):
                at = each.timestamp() if each.tzinfo else utc_of(each, self.zone)
                if at > newest:
                    yield at
                    newest = at
        except OverflowError:  # the calendar ends
            return

    def _by_clock(self, moment: float, *, back: bool = False) -> Iterator[datetime]:
        """The times as clocks show them: naive, or with the zone where each hour counts."""
        local = datetime.fromtimestamp(moment, self.zone)
        hourly = self.expression.split()[1] == "*"
        return CronSim(self.expression, local if hourly else local.replace(tzinfo=None), reverse=back)
