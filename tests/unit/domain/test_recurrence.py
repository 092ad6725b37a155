"""Moments that come again: each by its number, in local time, over the nights on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.recurrence import LAST, WORKDAYS, Recurrence, Timetable, local_of, utc_of, zone_named

BERLIN = ZoneInfo("Europe/Berlin")
RULES = [
    Recurrence(unit="minute", count=90),
    Recurrence(unit="hour", count=5),
    Recurrence(unit="day"),
    Recurrence(unit="week", weekdays=WORKDAYS),
    Recurrence(unit="week", count=2, weekdays=(0, 6)),
    Recurrence(unit="month"),
    Recurrence(unit="month", weekdays=(0,), which=1),
    Recurrence(unit="month", count=5, weekdays=(6,), which=LAST),
    Recurrence(unit="year"),
]


def table(rule: Recurrence, start: str) -> Timetable:
    return Timetable(start=datetime.fromisoformat(start), zone=BERLIN, rule=rule)


def local(moments: Timetable, count: int) -> list[str]:
    """The first moments, as clocks there show them."""
    return [f"{datetime.fromtimestamp(moments.nth(each), moments.zone):%m-%d %H:%M%z}" for each in range(count)]


def test_a_time_that_the_night_lacks_means_the_first_moment_after_the_gap():
    daily = table(Recurrence(unit="day"), "2026-03-28T02:30")
    assert local(daily, 3) == ["03-28 02:30+0100", "03-29 03:00+0200", "03-30 02:30+0200"]


def test_a_time_that_the_night_has_twice_comes_once():
    daily = table(Recurrence(unit="day"), "2026-10-24T02:30")
    assert local(daily, 3) == ["10-24 02:30+0200", "10-25 02:30+0200", "10-26 02:30+0100"]


def test_a_gap_of_half_an_hour_and_a_day_that_was_left_out():
    assert local_of(utc_of(datetime(2026, 10, 4, 2, 15), ZoneInfo("Australia/Lord_Howe")), UTC).minute == 30
    apia = ZoneInfo("Pacific/Apia")
    assert local_of(utc_of(datetime(2011, 12, 30, 9), apia), apia) == datetime(2011, 12, 31)


def test_hours_are_hours_whatever_the_clocks_do():
    moments = table(Recurrence(unit="hour", count=1), "2026-10-25T01:30")
    assert {moments.nth(each + 1) - moments.nth(each) for each in range(4)} == {3_600.0}


def test_the_days_of_a_week_begin_at_the_first_that_is_allowed():
    assert local(table(Recurrence(unit="week", weekdays=WORKDAYS), "2026-11-21T08:00"), 6) == [
        *(f"11-{day} 08:00+0100" for day in (23, 24, 25, 26, 27, 30)),
    ]
    assert [
        day[:5] for day in local(table(Recurrence(unit="week", count=2, weekdays=(0, 3)), "2026-11-24T08:00"), 4)
    ] == [
        *("11-26", "12-07", "12-10", "12-21"),
    ]


def test_a_short_month_has_its_last_day_and_the_next_the_day_again():
    assert [day[:5] for day in local(table(Recurrence(unit="month"), "2027-01-31T08:00"), 4)] == [
        *("01-31", "02-28", "03-31", "04-30"),
    ]
    years = table(Recurrence(unit="year"), "2028-02-29T08:00")
    assert [f"{local_of(years.nth(each), BERLIN):%Y-%m-%d}" for each in (0, 1, 4)] == [
        *("2028-02-29", "2029-02-28", "2032-02-29"),
    ]


@pytest.mark.parametrize(
    ("which", "days"),
    [
        (1, ["02-01", "03-01", "04-05", "05-03", "06-07"]),
        (2, ["02-08", "03-08", "04-12", "05-10", "06-14"]),
        (4, ["02-22", "03-22", "04-26", "05-24", "06-28"]),
        (LAST, ["02-22", "03-29", "04-26", "05-31", "06-28"]),
    ],
)
def test_a_weekday_of_each_month_has_its_number(which: int, days: list[str]):
    monthly = table(Recurrence(unit="month", weekdays=(0,), which=which), "2027-02-01T08:00")
    assert [day[:5] for day in local(monthly, 5)] == days


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_is_read_as_it_is_written(rule: Recurrence):
    assert Recurrence.parse(str(rule)) == rule


@pytest.mark.parametrize("text", ["", "day", "0x day", "1 fortnight", "1 week on someday", "1 day\n"])
def test_what_is_no_rule_is_refused(text: str):
    with pytest.raises(ValueError, match=r"recurrence|not in tuple"):
        Recurrence.parse(text)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("1 day", "every day"),
        ("2 hour", "every 2 hours"),
        ("1 week on mon,tue,wed,thu,fri", "every weekday"),
        ("1 week on mon", "every Monday"),
        ("1 month on first mon", "every month on the first Monday"),
        ("3 month on last fri", "every 3 months on the last Friday"),
        ("2 week on mon,thu", "every 2 weeks on Monday and Thursday"),
    ],
)
def test_a_rule_in_words(rule: str, said: str):
    assert Recurrence.parse(rule).said == said


@given(
    st.sampled_from(RULES),
    st.datetimes(min_value=datetime(2020, 1, 1), max_value=datetime(2030, 1, 1)),
    st.integers(min_value=0, max_value=400),
    st.integers(min_value=-1, max_value=1),
    st.sampled_from(["Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Australia/Lord_Howe", "UTC"]),
)
def test_the_count_up_to_a_moment_is_its_number(rule: Recurrence, start: datetime, number: int, off: int, zone: str):
    moments = Timetable(start=start.replace(microsecond=0), zone=ZoneInfo(zone), rule=rule)
    moment = moments.nth(number)
    counted = moments.count(moment + off)
    assert counted == number + (off >= 0)
    assert moments.after(moment) == moments.nth(number + 1)
    assert moments.nth(number + 1) > moment


def test_the_end_of_the_calendar_is_never_reached():
    moments = table(Recurrence(unit="year", count=1_000), "2026-11-24T08:00")
    assert moments.nth(9_000) == inf
    assert moments.after(moments.nth(7)) is None
    assert local_of(moments.nth(1), BERLIN) - moments.start > timedelta(days=365_000)


def test_a_zone_that_does_not_exist():
    assert zone_named("Europe/Berlin") == BERLIN
    assert zone_named("Mars/Base") is None
    assert zone_named("../../etc/passwd") is None
    assert zone_named("") is None
    assert zone_named("x" * 100_000) is None
    assert zone_named("UTC") is UTC
