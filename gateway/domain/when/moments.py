"""From the parts of a time to its moment."""

from __future__ import annotations

from calendar import monthrange
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Final

from msgspec import Struct

from gateway.domain.recurrence import Recurrence, Timetable, local_of, utc_of
from gateway.domain.when.parts import EXACT, LAST_DAY, BadTime, TimeParts
from gateway.runtime.structs import replace

_FURTHEST: Final = 50 * 366 * 86_400.0  # seconds
_MORNING: Final = time(9)  # of a day without a time
_LONG: Final = (1, 3, 5, 7, 8, 10, 12)  # months with 31 days; no two short ones follow one another
_TOO_FAR: Final = "That is too far away: I remind of what comes within 50 years."


class When(Struct, frozen=True, kw_only=True):
    """A time that a text says. `start` is naive local time, `due` its moment (seconds since the epoch): with a `rule`
    the first that is yet to come. `rest`: the text without the time."""

    start: datetime
    due: float
    rule: Recurrence | None = None
    rest: str = ""


def resolved(parts: TimeParts, now: float, zone: tzinfo) -> When:
    """The moment that is said by the parts. Raises BadTime."""
    try:
        return checked(_moment(parts, now, zone), now, zone)
    except BadTime:
        raise
    except (OverflowError, ValueError):
        raise BadTime(_TOO_FAR) from None


def checked(when: When, now: float, zone: tzinfo) -> When:
    """Raises BadTime."""
    if when.due > now + _FURTHEST:
        raise BadTime(_TOO_FAR)
    if when.due <= now:
        past, present = f"{when.start:%Y-%m-%d %H:%M}", f"{local_of(now, zone):%A, %Y-%m-%d %H:%M}"
        raise BadTime(f"{past} is in the past: it is {present} now ({zone}).")
    return when


def _moment(parts: TimeParts, now: float, zone: tzinfo) -> When:
    if parts.rule is not None:
        return _repeated(parts, parts.rule, now, zone)
    if (parts.next_week and parts.weekday is None) or (parts.next_month and parts.month_day is None):
        parts.spans.append((1, "week" if parts.next_week else "month"))
    if parts.spans:
        return _later(parts, now, zone)
    start = _once(parts, local_of(now, zone))
    return When(start=start, due=utc_of(start, zone))


def _later(parts: TimeParts, now: float, zone: tzinfo) -> When:
    """A span from now on: of hours and less exactly, of days and more by the calendar."""
    local, seconds = local_of(now, zone), 0
    for number, unit in parts.spans:
        if unit in EXACT:
            seconds += number * EXACT[unit]
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
    return When(start=local_of(due, zone), due=due)


def _once(parts: TimeParts, local: datetime) -> datetime:
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
        if day == LAST_DAY or day <= last:
            found = datetime.combine(date(year, month + 1, min(day, last)), at)
            if found > local:
                return found
    raise BadTime(_TOO_FAR)


def _repeated(parts: TimeParts, rule: Recurrence, now: float, zone: tzinfo) -> When:
    local = local_of(now, zone)
    if rule.unit in ("minute", "hour") and parts.at is None and not parts.has_day:
        first = now + rule.count * EXACT[rule.unit]
        return When(start=local_of(first, zone), due=first, rule=rule)
    if parts.weekday is not None and rule.unit == "week":
        rule, parts.weekday = Recurrence(unit="week", count=rule.count, weekdays=(parts.weekday,)), None
    if parts.is_by_night and rule.unit == "week" and rule.weekdays:  # "every friday night at 1"
        rule = replace(rule, weekdays=tuple(sorted((day + 1) % 7 for day in rule.weekdays)))
    at = parts.at or _MORNING
    dated = parts.has_day and parts.month_day is None
    start = _once(parts, local) if dated else datetime.combine(local.date(), at)
    if parts.month_day is not None:
        long_month = local.month if local.month in _LONG else local.month - 1 or 12
        year = local.year - 1 if long_month > local.month else local.year
        start = datetime.combine(date(year, long_month, min(parts.month_day, 31)), at)
    if rule.which:
        start = datetime.combine(local.date().replace(day=1), at)
        if Timetable(start=start, zone=zone, rule=rule).nth(0) <= now:
            start = datetime.combine((start + timedelta(days=31)).date().replace(day=1), at)
    due = Timetable(start=start, zone=zone, rule=rule).after(now)
    if due is None:
        raise BadTime(_TOO_FAR)
    return When(start=start, due=due, rule=rule)
