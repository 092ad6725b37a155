"""The days that a question speaks of: "in March", "last Tuesday", "2026-03-05", "昨天".

English, Chinese and dates in digits are read. A month or a weekday without a year is the last one that has begun. Days
are those of UTC, with half a day on each side, because the store does not know where a person lives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from gateway.runtime.patterns import late

Span: TypeAlias = tuple[float, float]  # seconds since the epoch; the end is not in the span

_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MONTH: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?\b"
_YEAR: Final = r"(?:,? (?P<year>(?:19|20)\d\d)\b)?"
_MARGIN: Final = timedelta(hours=12)
_MOST: Final = 4  # spans of one question

_PATTERNS: Final = tuple(
    late(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?P<year>(?:19|20)\d\d)[-/.](?P<number>\d{1,2})(?:[-/.](?P<day>\d{1,2}))?\b",
        rf"\b{_MONTH} {_DAY}{_YEAR}",
        rf"\b{_DAY} (?:of )?{_MONTH}{_YEAR}",
        rf"\b(?:in|since|during|last|of|early|late) {_MONTH}{_YEAR}",
        rf"\b{_MONTH} (?P<year>(?:19|20)\d\d)\b",
        r"\b(?:on|last|this|since) (?P<weekday>mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b",
        r"\b(?P<count>\d{1,3}|an?|two|three|four) (?P<unit>day|week|month|year)s? ago\b",
        r"\b(?P<which>last|this) (?P<unit>week|month|year)\b",
        r"\b(?P<word>today|yesterday)\b",
        r"\bin (?P<year>(?:19|20)\d\d)\b",
        r"(?:(?P<year>(?:19|20)\d\d)年)?(?P<number>\d{1,2})月(?:(?P<day>\d{1,2})[日号])?",
        r"(?P<word>今天|昨天|前天|上周|上星期|上个月|上月|去年)",
    )
)
_COUNTS: Final = {"a": 1, "an": 1, "two": 2, "three": 3, "four": 4}
_LENGTHS: Final = {"day": 1, "week": 7, "month": 30, "year": 365}
_WORDS: Final = {  # days back to the beginning, days that it lasts
    "today": (0, 1),
    "今天": (0, 1),
    "yesterday": (1, 1),
    "昨天": (1, 1),
    "前天": (2, 1),
    "上周": (14, 14),
    "上星期": (14, 14),
    "上个月": (60, 60),
    "上月": (60, 60),
    "去年": (730, 730),
}


def spans(question: str, now: float) -> tuple[Span, ...]:
    """The spans of time that a question names, at most four."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    found = (span for pattern in _PATTERNS for match in pattern.finditer(question) for span in _span(match, today))
    return tuple(dict.fromkeys(found))[:_MOST]


def _span(match: re.Match[str], today: datetime) -> Iterator[Span]:
    said = {name: value.casefold() for name, value in match.groupdict().items() if value}
    try:
        begin, days = _days(said, today)
        yield (begin - _MARGIN).timestamp(), (begin + timedelta(days=days) + _MARGIN).timestamp()
    except (ValueError, OverflowError):
        return  # "month 13": no date


def _days(said: dict[str, str], today: datetime) -> tuple[datetime, int]:
    """The first day, and the number of days. Raises ValueError where there is no date."""
    if word := said.get("word"):
        back, days = _WORDS[word]
        return today - timedelta(days=back), days
    if weekday := said.get("weekday"):
        back = (today.weekday() - _DAYS.index(weekday[:3])) % 7 or 7
        return today - timedelta(days=back), 1
    if count := said.get("count"):
        length = _LENGTHS[said["unit"]]
        back = length * (_COUNTS.get(count) or int(count))
        return today - timedelta(days=back + length // 4), length // 2 + 1
    if unit := said.get("unit"):
        length = _LENGTHS[unit]
        return (today - timedelta(days=2 * length), 2 * length) if said["which"] == "last" else _now(today, length)
    month = _MONTHS.index(said["month"][:3]) + 1 if "month" in said else int(said.get("number", "0"))
    if not month:
        return today.replace(year=int(said["year"]), month=1, day=1), 365
    return _in_month(said, month, today)


def _now(today: datetime, length: int) -> tuple[datetime, int]:
    return today - timedelta(days=length), length + 1


def _in_month(said: dict[str, str], month: int, today: datetime) -> tuple[datetime, int]:
    day = int(said.get("day", "1"))
    first = today.replace(year=int(said.get("year", today.year)), month=month, day=day)
    if "year" not in said and first > today:
        first = first.replace(year=first.year - 1)
    return first, 1 if "day" in said else 31
