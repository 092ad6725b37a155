"""Moments that come again: each by its number, in local time, over the nights on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.recurrence import WORKDAYS, Recurrence, Timetable, local_of, utc_of, zone_named

BERLIN = ZoneInfo("Europe/Berlin")
RULES = [
    Recurrence.parse(rule)
    for rule in (
        "FREQ=MINUTELY;INTERVAL=90",
        "FREQ=HOURLY;INTERVAL=5",
        "FREQ=DAILY",
        "FREQ=DAILY;BYHOUR=2,3,20;BYMINUTE=0",
        "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR",
        "FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,SU",
        "FREQ=MONTHLY",
        "FREQ=MONTHLY;BYMONTHDAY=1,15",
        "FREQ=MONTHLY;BYMONTHDAY=31",
        "FREQ=MONTHLY;BYDAY=1MO",
        "FREQ=MONTHLY;INTERVAL=5;BYDAY=-1SU",
        "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1",
        "FREQ=YEARLY",
        "FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24",
    )
]


def table(rule: Recurrence | str, start: str) -> Timetable:
    first = datetime.fromisoformat(start)
    rule = Recurrence.parse(rule, first) if isinstance(rule, str) else rule
    return Timetable(start=first, zone=BERLIN, rule=rule)


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
    moments = table(Recurrence(unit="hour"), "2026-10-25T01:30")
    assert {moments.nth(each + 1) - moments.nth(each) for each in range(4)} == {3_600.0}


def test_the_days_of_a_week_begin_at_the_first_that_is_allowed():
    assert local(table(Recurrence(unit="week", weekdays=WORKDAYS), "2026-11-21T08:00"), 6) == [
        *(f"11-{day} 08:00+0100" for day in (23, 24, 25, 26, 27, 30)),
    ]
    assert [
        day[:5]
        for day in local(table(Recurrence(unit="week", interval=2, weekdays=("MO", "TH")), "2026-11-24T08:00"), 4)
    ] == [
        *("11-26", "12-07", "12-10", "12-21"),
    ]


def test_a_short_month_has_its_last_day_and_the_next_the_day_again():
    assert [day[:5] for day in local(table("FREQ=MONTHLY", "2027-01-31T08:00"), 4)] == [
        *("01-31", "02-28", "03-31", "04-30"),
    ]
    years = table("FREQ=YEARLY", "2028-02-29T08:00")
    assert [f"{local_of(years.nth(each), BERLIN):%Y-%m-%d}" for each in (0, 1, 4)] == [
        *("2028-02-29", "2029-02-28", "2032-02-29"),
    ]


@pytest.mark.parametrize(
    ("which", "days"),
    [
        (1, ["02-01", "03-01", "04-05", "05-03", "06-07"]),
        (2, ["02-08", "03-08", "04-12", "05-10", "06-14"]),
        (4, ["02-22", "03-22", "04-26", "05-24", "06-28"]),
        (-1, ["02-22", "03-29", "04-26", "05-31", "06-28"]),
    ],
)
def test_a_weekday_of_each_month_has_its_number(which: int, days: list[str]):
    monthly = table(f"FREQ=MONTHLY;BYDAY={which}MO", "2027-02-01T08:00")
    assert [day[:5] for day in local(monthly, 5)] == days


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_is_read_as_it_is_written(rule: Recurrence):
    assert Recurrence.parse(str(rule)) == rule


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        *(
            (text, "I cannot keep ")
            for text in ("", "day", "0x day", "1 fortnight", "1 day\n", "FREQ=SECONDLY", "RDATE=1")
        ),
        ("1 week on someday", "not a recurrence"),
        ("BYDAY=MO", "begins with how often it comes"),
        ("FREQ=DAILY;FREQ=DAILY", "I cannot keep 'FREQ=DAILY' of this rule; it has that twice."),
        ("FREQ=DAILY;INTERVAL=0", "I cannot keep 'INTERVAL=0'"),
        ("FREQ=DAILY;UNTIL=20261301", "month must be in"),
        ("FREQ=DAILY;UNTIL=20261231T000000Z", "local time without a Z, such as UNTIL=20261210 or "),
        ("FREQ=WEEKLY;WKST=SU;BYDAY=TU", "I cannot keep 'WKST=SU' of this rule; weeks begin on Monday, so leave WKST"),
        ("FREQ=DAILY;COUNT=1001", "COUNT is a number from 1 to 1,000."),
        ("FREQ=DAILY;COUNT=3;UNTIL=20261231", "by COUNT or by UNTIL"),
        ("FREQ=HOURLY;BYHOUR=9,10", "take no BY… part"),
        ("FREQ=WEEKLY;BYMONTHDAY=1", "need FREQ=MONTHLY"),
        ("FREQ=DAILY;INTERVAL=2;BYDAY=MO", "Use FREQ=WEEKLY"),
        ("FREQ=WEEKLY;INTERVAL=2;BYMONTH=6;BYDAY=MO", "no BYMONTH with INTERVAL"),
        ("FREQ=YEARLY;BYMONTHDAY=1", "needs BYMONTH"),
        ("FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "None of these months has such a day."),
        ("FREQ=MONTHLY;BYMONTHDAY=1,15;BYSETPOS=1", "BYSETPOS needs BYDAY"),
        ("FREQ=MONTHLY;BYDAY=1MO;BYMONTHDAY=13", "only with plain days"),
        ("FREQ=MONTHLY;BYDAY=MO;BYSETPOS=1;BYHOUR=8,20;BYMINUTE=0", "one time of day"),
        ("FREQ=DAILY;BYHOUR=8", "go together"),
    ],
)
def test_what_is_no_rule_is_refused(text: str, sentence: str):
    with pytest.raises(ValueError, match=sentence):
        Recurrence.parse(text)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("FREQ=DAILY", "every day"),
        ("FREQ=HOURLY;INTERVAL=2", "every 2 hours"),
        ("RRULE:FREQ=WEEKLY;WKST=MO;BYDAY=FR,MO,TU,WE,TH", "every weekday"),
        ("FREQ=DAILY;BYDAY=MO", "every Monday"),
        ("FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,TH", "every 2 weeks on Monday and Thursday"),
        ("FREQ=DAILY;BYHOUR=20,8;BYMINUTE=0;COUNT=6", "every day at 08:00 and 20:00, 6 times in all"),
        ("FREQ=MONTHLY;BYDAY=1MO", "every month on the first Monday"),
        ("FREQ=MONTHLY;BYDAY=5FR", "every month on the fifth Friday"),
        ("FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1", "every month on the last weekday"),
        ("FREQ=MONTHLY;BYDAY=TU,TH;BYSETPOS=2", "every month on the second of Tuesday and Thursday"),
        ("FREQ=MONTHLY;BYDAY=TU,1MO", "every month on the first Monday and each Tuesday"),
        ("FREQ=MONTHLY;BYDAY=FR;BYMONTHDAY=13", "every month on each Friday that is the 13th"),
        ("FREQ=MONTHLY;BYMONTHDAY=15,1", "every month on the 1st and the 15th"),
        ("FREQ=MONTHLY;BYMONTHDAY=1,-1", "every month on the 1st and the last day"),
        ("FREQ=MONTHLY;BYMONTHDAY=31", "every month on the last day"),
        ("FREQ=MONTHLY;BYMONTHDAY=30", "every month on the 30th, or the last day of a shorter month"),
        ("FREQ=YEARLY;BYMONTH=12;BYMONTHDAY=24", "every year in December on the 24th"),
        ("FREQ=WEEKLY;BYMONTH=6,7;BYDAY=MO;UNTIL=20281231", "every Monday in June and July, until 31 Dec 2028"),
        ("FREQ=DAILY;UNTIL=20281231T120000", "every day, until 31 Dec 2028, 12:00"),
        # as they were stored before
        ("1 week on mon,tue,wed,thu,fri", "every weekday"),
        ("3 month on last fri", "every 3 months on the last Friday"),
        ("2 week on mon,thu", "every 2 weeks on Monday and Thursday"),
        ("90 minute", "every 90 minutes"),
    ],
)
def test_a_rule_in_words(rule: str, said: str):
    assert Recurrence.parse(rule).said == said


@pytest.mark.parametrize(
    ("rule", "start", "days"),
    [
        ("1 month", "2027-01-31T08:00", ["01-31", "02-28", "03-31"]),
        ("1 year", "2028-02-29T08:00", ["02-29", "02-28", "02-28"]),
        ("2 week on mon,thu", "2026-11-24T08:00", ["11-26", "12-07", "12-10"]),
        ("1 month on last fri", "2026-11-01T08:00", ["11-27", "12-25", "01-29"]),
        ("3 day", "2026-11-24T08:00", ["11-24", "11-27", "11-30"]),
        ("FREQ=DAILY;COUNT=2", "2026-11-24T08:00", ["11-24", "11-25"]),
        ("FREQ=DAILY;UNTIL=20261125", "2026-11-24T08:00", ["11-24", "11-25"]),
        ("FREQ=HOURLY;INTERVAL=24;COUNT=2", "2026-11-24T08:00", ["11-24", "11-25"]),
        ("FREQ=MONTHLY;BYDAY=5SU", "2027-01-01T08:00", ["01-31", "05-30", "08-29"]),
    ],
)
def test_the_first_moments_of_a_rule(rule: str, start: str, days: list[str]):
    moments = table(rule, start)
    found = [moment for moment in map(moments.nth, range(3)) if moment != inf]
    assert [f"{local_of(moment, BERLIN):%m-%d}" for moment in found] == days
    if len(found) < 3:
        assert moments.after(found[-1]) is None
        assert moments.count(found[-1] + 1e9) == len(found)


def test_two_times_in_a_gap_are_one_moment():
    moments = table("FREQ=DAILY;BYHOUR=2,3;BYMINUTE=0", "2027-03-27T02:00")
    assert local(moments, 4) == ["03-27 02:00+0100", "03-27 03:00+0100", "03-28 03:00+0200", "03-29 02:00+0200"]


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
    moments = table("FREQ=YEARLY;INTERVAL=1000", "2026-11-24T08:00")
    assert moments.nth(9_000) == inf
    assert moments.after(moments.nth(7)) is None
    assert local_of(moments.nth(1), BERLIN) - moments.start > timedelta(days=365_000)
    assert table("FREQ=HOURLY", "9999-12-29T08:00").after(1e12) is None


def test_a_zone_that_does_not_exist():
    assert zone_named("Europe/Berlin") == BERLIN
    assert zone_named("Mars/Base") is None
    assert zone_named("../../etc/passwd") is None
    assert zone_named("") is None
    assert zone_named("x" * 100_000) is None
    assert zone_named("UTC") is UTC
