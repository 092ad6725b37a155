"""From the parts of a time to its moment."""

from __future__ import annotations

from calendar import monthrange
from datetime import datetime, time, timedelta, tzinfo
from typing import Final

from msgspec import Struct

from gateway.domain.recurrence import Recurrence, Rule, Timetable, local_of, utc_of, zone_named
from gateway.domain.when.grammar import EXACT, BadTime, TimeParts
from gateway.runtime.structs import replace

_FURTHEST: Final = 50 * 366 * 86_400.0  # seconds
_MORNING: Final = time(9)  # of a day without a time
_TOO_FAR: Final = "This time is too far away: I can remind you of what comes within 50 years."


class When(Struct, frozen=True, kw_only=True):
    """A time that a text says. `start` is naive local time in `zone`, `due` its moment (seconds since the epoch): with
    a `rule` the first that is yet to come. `is_span`: it was said from now on. `rest`: the text without the time."""

    start: datetime
    due: float
    zone: tzinfo
    rule: Rule | None = None
    is_span: bool = False
    rest: str = ""


def resolved(parts: TimeParts, now: float, zone: tzinfo) -> When:
    """The moment that is said by the parts, in the zone that they name, else in this one. Raises BadTime."""
    try:
        return _checked(_moment(parts, now, parts.zone or zone), now)
    except BadTime:
        raise
    except (OverflowError, ValueError):
        raise BadTime(_TOO_FAR) from None


def _checked(when: When, now: float) -> When:
    """Raises BadTime."""
    if when.due > now + _FURTHEST:
        raise BadTime(_TOO_FAR)
    if when.due <= now:
        past, present = f"{when.start:%Y-%m-%d %H:%M}", f"{local_of(now, when.zone):%A, %Y-%m-%d %H:%M}"
        raise BadTime(f"{past} is in the past: it is {present} now ({when.zone}).")
    return when


def repeated(rule: Rule, start: datetime, now: float, zone: tzinfo) -> When:
    """The first moment of a rule after now. One that leaves out weeks or months goes by its first day from the start
    on. Raises BadTime."""
    if isinstance(rule, Recurrence) and rule.interval > 1 and (rule.weekdays or rule.month_days):
        each = Timetable(start=start, zone=zone, rule=replace(rule, interval=1, times=None))
        start = local_of(each.after(max(now, utc_of(start, zone) - 1)) or now, zone)
    if zone_named(str(zone)) is None:
        raise BadTime(f"A reminder that repeats needs a place instead of {zone}, such as: every day at 9 Asia/Kolkata.")
    due = rule.table(start, zone).after(now)
    if due is None:
        raise BadTime("All times of this rule are in the past.")
    return When(start=start, due=due, zone=zone, rule=rule)


def _moment(parts: TimeParts, now: float, zone: tzinfo) -> When:
    local, rule = local_of(now, zone), parts.rule
    if rule is not None and rule.is_exact:
        due = now + rule.least_seconds
        return When(start=local_of(due, zone), due=due, zone=zone, rule=rule)
    if rule is not None:
        return repeated(rule, datetime.combine(local.date(), parts.at or _MORNING), now, zone)
    if parts.spans:
        return _later(parts, now, zone)
    start = _once(parts, local)
    return When(start=start, due=utc_of(start, zone), zone=zone)


def _later(parts: TimeParts, now: float, zone: tzinfo) -> When:
    """A span from now on: of hours and less exactly, of days and more by the calendar."""
    local, seconds = local_of(now, zone), 0
    for number, unit in parts.spans:
        if unit in EXACT:
            seconds += number * EXACT[unit]
        elif unit in ("day", "week"):
            local += timedelta(days=number * (7 if unit == "week" else 1))
        else:
            year, month = divmod(local.year * 12 + local.month - 1 + number * (12 if unit == "year" else 1), 12)
            local = local.replace(year=year, month=month + 1, day=min(local.day, monthrange(year, month + 1)[1]))
    if parts.at is not None:
        local = datetime.combine(local.date(), parts.at)
    by_calendar = local != local_of(now, zone)
    due = (utc_of(local, zone) if by_calendar else now) + seconds
    return When(start=local_of(due, zone), due=due, zone=zone, is_span=parts.at is None)


def _once(parts: TimeParts, local: datetime) -> datetime:
    """The next local time of a day, or of a time of day alone."""
    at, today = parts.at or _MORNING, local.date()
    if parts.day is not None and parts.day.year > 4:
        return datetime.combine(parts.day, at)
    if parts.day is not None or parts.month_day is not None:
        days = (today + timedelta(days=ahead) for ahead in range(9 * 366))
        said, day = parts.day, parts.month_day
        fits = (
            each for each in days if ((each.month, each.day) == (said.month, said.day) if said else each.day == day)
        )
        return next(found for each in fits if (found := datetime.combine(each, at)) > local)
    if parts.offset is not None:
        by_night = parts.is_by_night or (at == time.min and not parts.offset)  # "today at midnight"
        return datetime.combine(today + timedelta(days=parts.offset + by_night), at)
    if parts.weekday is not None:
        return _on_weekday(parts, parts.weekday, at, local)
    found = datetime.combine(today, at)
    return found if found > local else found + timedelta(days=1)


def _on_weekday(parts: TimeParts, weekday: int, at: time, local: datetime) -> datetime:
    ahead = weekday - local.weekday() + 7 * parts.next_week
    if parts.is_next:
        if ahead > 0:
            first, second = (local.date() + timedelta(days=days) for days in (ahead, ahead + 7))
            raise BadTime(f'"Next" may mean {first:%A, %Y-%m-%d} or {second:%Y-%m-%d}. Say the date.')
        ahead += 7
    found = datetime.combine(local.date() + timedelta(days=ahead + parts.is_by_night), at)
    return found if found > local else found + timedelta(days=7)
