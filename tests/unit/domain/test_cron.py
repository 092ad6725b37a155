"""Cron expressions: their moments over the nights on which clocks change, their words, and what is refused."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.cron import Cron, CronTable
from gateway.domain.recurrence import MOST_COUNTED, Recurrence, rule_of
from gateway.domain.when import BadTime, NoTime, read, read_exactly, says_no_time

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 29, 14, 5, 30, tzinfo=BERLIN).timestamp()

# Worked out by hand, in UTC, from the hours at which each zone's clocks change (zdump -v). The first time of a row is
# the moment behind which the others come.
MOMENTS = """
30 2 * * *      Europe/Berlin       2026-03-28T00:00  2026-03-28T01:30 2026-03-29T01:00 2026-03-30T00:30
30 2 * * *      Europe/Berlin       2026-10-24T00:00  2026-10-24T00:30 2026-10-25T00:30 2026-10-26T01:30
30 2 * * *      Europe/Berlin       2026-10-25T01:15  2026-10-26T01:30
0 2 * * *       Europe/Berlin       2026-03-28T12:00  2026-03-29T01:00 2026-03-30T00:00
0 3 * * *       Europe/Berlin       2026-03-28T12:00  2026-03-29T01:00 2026-03-30T01:00
0 2,3 * * *     Europe/Berlin       2026-03-28T12:00  2026-03-29T01:00 2026-03-30T00:00 2026-03-30T01:00
0,30 2 * * *    Europe/Berlin       2026-10-24T12:00  2026-10-25T00:00 2026-10-25T00:30 2026-10-26T01:00
*/30 2 * * *    Europe/Berlin       2026-10-24T12:00  2026-10-25T00:00 2026-10-25T00:30 2026-10-26T01:00
*/30 2 * * *    Europe/Berlin       2026-03-28T12:00  2026-03-29T01:00 2026-03-30T00:00 2026-03-30T00:30
*/30 * * * *    Europe/Berlin       2026-10-25T00:15  2026-10-25T00:30 2026-10-25T01:00 2026-10-25T01:30
*/30 * * * *    Europe/Berlin       2026-03-29T00:15  2026-03-29T00:30 2026-03-29T01:00 2026-03-29T01:30
30 * * * *      Europe/Berlin       2026-03-29T00:00  2026-03-29T00:30 2026-03-29T01:30 2026-03-29T02:30
30 0-23 * * *   Europe/Berlin       2026-10-24T23:45  2026-10-25T00:30 2026-10-25T01:30 2026-10-25T02:30
@hourly         Europe/Berlin       2026-10-24T23:30  2026-10-25T00:00 2026-10-25T01:00 2026-10-25T02:00
0 */2 * * *     Europe/Berlin       2026-03-28T23:00  2026-03-29T01:00 2026-03-29T02:00 2026-03-29T04:00
0 9 * * 1-5     Europe/Berlin       2026-03-27T09:00  2026-03-30T07:00 2026-03-31T07:00
0 0 13 * 5      Europe/Berlin       2026-11-26T23:00  2026-12-03T23:00 2026-12-10T23:00 2026-12-12T23:00
@monthly        Europe/Berlin       2026-10-15T00:00  2026-10-31T23:00 2026-11-30T23:00
30 1 * * *      Europe/London       2026-10-24T12:00  2026-10-25T00:30 2026-10-26T01:30
30 1 * * *      Europe/London       2026-03-28T12:00  2026-03-29T01:00 2026-03-30T00:30
0 0 L * *       Europe/London       2026-01-31T12:00  2026-02-28T00:00 2026-03-30T23:00 2026-04-29T23:00
30 2 * * SUN    America/New_York    2026-03-01T12:00  2026-03-08T07:00 2026-03-15T06:30
30 1 1 11 *     America/New_York    2026-10-31T12:00  2026-11-01T05:30 2027-11-01T05:30
15,45 1 * * *   America/New_York    2026-10-31T12:00  2026-11-01T05:15 2026-11-01T05:45 2026-11-02T06:15
0 0 29 FEB *    America/New_York    2026-12-01T00:00  2028-02-29T05:00 2032-02-29T05:00
0 12 31 * *     America/New_York    2026-01-31T18:00  2026-03-31T16:00 2026-05-31T16:00 2026-07-31T16:00
0 9 * * MON#1   America/New_York    2026-10-06T00:00  2026-11-02T14:00 2026-12-07T14:00
15 2 * * *      Australia/Lord_Howe 2026-10-03T00:00  2026-10-03T15:30 2026-10-04T15:15
45 1 * * *      Australia/Lord_Howe 2026-04-04T00:00  2026-04-04T14:45 2026-04-05T15:15
*/15 1 * * *    Australia/Lord_Howe 2026-04-04T14:20  2026-04-04T14:30 2026-04-04T14:45 2026-04-05T14:30
*/15 * * * *    Australia/Lord_Howe 2026-04-04T14:40  2026-04-04T14:45 2026-04-04T15:00 2026-04-04T15:15
30 2 * * *      Africa/Casablanca   2026-02-14T12:00  2026-02-15T01:30 2026-02-16T02:30
30 2 * * *      Africa/Casablanca   2026-03-21T12:00  2026-03-22T02:00 2026-03-23T01:30
0 4 * * 0       Africa/Casablanca   2026-03-09T00:00  2026-03-15T04:00 2026-03-22T03:00 2026-03-29T03:00
0 9 * * *       Pacific/Apia        2011-12-29T12:00  2011-12-29T19:00 2011-12-30T10:00 2011-12-30T19:00
0 9 30 * *      Pacific/Apia        2011-12-01T00:00  2011-12-30T10:00 2012-01-29T19:00
0 0 31 12 *     Pacific/Apia        2011-12-01T00:00  2011-12-30T10:00 2012-12-30T10:00
30 0 * * *      Africa/Cairo        2026-04-23T00:00  2026-04-23T22:00 2026-04-24T21:30
30 23 * * *     Africa/Cairo        2026-10-29T12:00  2026-10-29T20:30 2026-10-30T21:30
0 0 * * *       America/Havana      2026-10-31T12:00  2026-11-01T04:00 2026-11-02T05:00
0 0 8 3 *       America/Havana      2026-03-01T00:00  2026-03-08T05:00 2027-03-08T05:00
30 2 * * *      America/St_Johns    2026-03-07T12:00  2026-03-08T05:30 2026-03-09T05:00
15 1 * * *      America/St_Johns    2026-10-31T12:00  2026-11-01T03:45 2026-11-02T04:45
30 1,2 * * *    Antarctica/Troll    2026-03-28T12:00  2026-03-29T01:00 2026-03-29T23:30 2026-03-30T00:30
30 1,2 * * *    Antarctica/Troll    2026-10-24T12:00  2026-10-24T23:30 2026-10-25T00:30 2026-10-26T01:30
15 0 * * SUN    America/Santiago    2026-09-01T00:00  2026-09-06T04:00 2026-09-13T03:15
30 23 * * SAT   America/Santiago    2026-04-01T00:00  2026-04-05T02:30 2026-04-12T03:30
0 0 * * *       Asia/Beirut         2026-03-28T12:00  2026-03-28T22:00 2026-03-29T21:00
0 3 * * *       Pacific/Chatham     2026-09-26T00:00  2026-09-26T14:00 2026-09-27T13:15
0 3 * * *       Pacific/Chatham     2026-04-04T00:00  2026-04-04T13:15 2026-04-05T14:15
0 6 * * *       Asia/Kathmandu      2026-03-29T00:30  2026-03-30T00:15 2026-03-31T00:15
59 23 31 12 *   UTC                 2026-12-31T23:59  2027-12-31T23:59
"""


def table(expression: str, zone: str, start: str = "2000-01-01") -> CronTable:
    return Cron.parse(expression).table(datetime.fromisoformat(start), ZoneInfo(zone))


def utc(moment: float | None) -> str:
    return "" if moment is None else f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%dT%H:%M}"


@pytest.mark.parametrize("row", MOMENTS.strip().splitlines())
def test_each_moment_comes_once_whatever_the_clocks_do(row: str) -> None:
    words = row.split()
    place = next(number for number, word in enumerate(words) if ("/" in word and word[0].isalpha()) or word == "UTC")
    moments, (begin, *expected) = table(" ".join(words[:place]), words[place]), words[place + 1 :]
    moment, found = datetime.fromisoformat(f"{begin}Z").timestamp(), []
    for number, _ in enumerate(expected, 1):
        following = moments.after(moment)
        assert following is not None
        # what passed up to a moment is what came one by one
        assert moments.passed(datetime.fromisoformat(f"{begin}Z").timestamp(), following) == (number, following)
        found.append(utc(following))
        moment = following
    assert found == expected


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("0 9 * * 1-5", "at 09:00 on Monday to Friday"),
        ("0 9 * jan-mar mon,wed", "at 09:00 on Monday and Wednesday in every month from January to March"),
        ("@daily", "at 00:00 every day"),
        ("@hourly", "at the start of every hour"),
        ("0 */6 * * *", "at 00:00, 06:00, 12:00, and 18:00 every day"),
        ("*/15 8-18 * * *", "every 15th minute from 08:00 to 18:59"),
        ("0 0 22 * *", "at 00:00 on the 22nd day of every month"),
        ("0 0 31 12 *", "at 00:00 on December 31"),
        ("0 9 L * *", "at 09:00 on the last day of every month"),
        ("0 0 * * 5L", "at 00:00 on the last Friday of the month"),
        # where words could mean another thing
        ("0 9 */2 * *", "by the cron expression `0 9 */2 * *`"),
        ("0 9 13 * FRI", "by the cron expression `0 9 13 * FRI`"),
        ("*/7 * * * *", "by the cron expression `*/7 * * * *`"),
    ],
)
def test_an_expression_in_words(expression: str, said: str) -> None:
    cron = Cron.parse(expression)
    assert cron.said == said
    assert rule_of(str(cron)) == cron


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("0 0 9 * * 1-5", "A cron expression here has no seconds and no years, only five fields: minute, hour, day"),
        ("0 9 * *", '"0 9 * *" is not a cron expression'),
        ("", '"" is not a cron expression'),
        ("@reboot", '"@REBOOT" is not a cron expression'),
        ("60 * * * *", 'The minute of the cron expression "60 * * * *" is wrong; its five fields are minute'),
        ("0 24 * * *", "The hour of "),
        ("0 9 30 2 *", "The day of "),
        ("0 9 * 13 *", "The month of "),
        ("0 9 * * FRI-MON", "The weekday of "),
        ("0 9 * * ٣", "The weekday of "),
        ("*/0 * * * *", "The minute of "),
        (f"{'1,' * 120}1 * * * *", "is not a cron expression"),
    ],
)
def test_what_is_no_expression_is_refused(expression: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        Cron.parse(expression)


@given(st.lists(st.text("0123456789*/,-#LWMONJA?@ ", max_size=8), min_size=4, max_size=6))
def test_no_expression_breaks_the_reading(fields: list[str]) -> None:
    with suppress(ValueError):
        cron = Cron.parse(" ".join(fields))
        assert cron.said
        assert 60 <= cron.least_seconds <= 86_400
        moments = cron.table(datetime(2026, 1, 1), BERLIN)
        first = moments.after(NOW)
        assert first is None or moments.passed(NOW, first) == (1, first)


def test_what_passed_is_counted_up_to_a_number_and_the_last_is_exact() -> None:
    moments = table("*/5 * * * *", "Europe/Berlin")
    year = 365 * 86_400
    assert moments.passed(NOW - year, NOW) == (MOST_COUNTED, NOW - 30)  # 14:05:00
    assert moments.passed(NOW - 20, NOW) == (0, NOW - 20)
    weekdays = table("*/10 6-20 * * 1-5", "Europe/Berlin")
    assert utc(weekdays.passed(NOW - year, NOW)[1]) == "2026-11-27T19:50"


def test_nothing_comes_before_the_start_or_where_the_calendar_ends() -> None:
    assert utc(table("0 9 * * *", "Europe/Berlin", "2026-12-24").after(NOW)) == "2026-12-24T08:00"
    assert table("0 0 * 2 MON#5", "UTC").after(datetime(2012, 3, 1, tzinfo=UTC).timestamp()) is not None
    assert table("* * */20 * 1L", "UTC").after(NOW) is None
    assert table("0 9 * * *", "Asia/Tokyo").after(datetime(9999, 12, 31, tzinfo=UTC).timestamp()) is None


@pytest.mark.parametrize(
    ("text", "rule", "rest"),
    [
        ('cron "0 9 * * 1-5" stand up', "cron 0 9 * * 1-5", "stand up"),
        ("cron “0 9 * * mon-fri”: stand up", "cron 0 9 * * MON-FRI", "stand up"),
        ("Cron '*/30 8-18 * * *' drink", "cron */30 8-18 * * *", "drink"),
        ("cron 0 9 * * 1-5 stand up", "cron 0 9 * * 1-5", "stand up"),
        ("cron `@weekly` look back", "cron 0 0 * * 0", "look back"),
        ("@daily look back", "cron 0 0 * * *", "look back"),
        ('cron "0 9 1 1 *" pay 30 euros tomorrow at 9', "cron 0 9 1 1 *", "pay 30 euros tomorrow at 9"),
    ],
)
def test_an_expression_stands_before_a_text(text: str, rule: str, rest: str) -> None:
    found = read(text, NOW, BERLIN)
    assert (str(found.rule), found.rest) == (rule, rest)
    assert not says_no_time(text)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("cron 0 0 9 * * 1-5 stand up", "Put the cron expression in quotes"),
        ("cron 0 9 * * 1-5 2 eggs", "Put the cron expression in quotes"),
        ('cron "0 0 9 * * *" stand up', "A cron expression here has no seconds"),
        ('cron "" stand up', '"" is not a cron expression'),
        ('cron "* * */20 * 1L" never', "All times of this rule are in the past."),
    ],
)
def test_an_expression_that_may_mean_another_is_refused(text: str, error: str) -> None:
    with pytest.raises(BadTime, match=re.escape(error)):
        read(text, NOW, BERLIN)


@pytest.mark.parametrize("text", ["cron job fix the thing now", "cronies", "@bob hello", "@dailyx hello"])
def test_other_words_are_no_expression(text: str) -> None:
    with pytest.raises(NoTime):
        read(text, NOW, BERLIN)
    with pytest.raises(NoTime):
        read_exactly(text, NOW, BERLIN)


@pytest.mark.parametrize("text", ["FREQ=DAILY", "1 month on last fri", "2 week on mon,thu"])
def test_a_rule_of_the_calendar_stays_one(text: str) -> None:
    assert isinstance(rule_of(text), Recurrence)
