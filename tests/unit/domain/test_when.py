"""Times in people's words, read on Monday, 2026-11-23, 14:05:30 in Berlin."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway.domain.when import BadTime, NoTime, When, read, read_exactly, reading, says_no_time

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 23, 14, 5, 30, tzinfo=BERLIN).timestamp()


def found(text: str) -> tuple[str, When]:
    when = read(text, NOW, BERLIN)
    return f"{datetime.fromtimestamp(when.due, BERLIN):%d %H:%M:%S}", when


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("2027-01-31 08:00 x", "2027-01-31 08:00"),
        ("2027-01-31T08:00 x", "2027-01-31 08:00"),
        ("tomorrow at 23:59 x", "2026-11-24 23:59"),
        ("on 2027-01-31 at 08:00 x", "2027-01-31 08:00"),
        ("on 5 December at 10 x", "2026-12-05 10:00"),
        ("december 5th at 10am x", "2026-12-05 10:00"),
        ("29 february x", "2028-02-29 09:00"),
        ("in 2 weeks x", "2026-12-07 14:05"),
        ("in 3 months x", "2027-02-23 14:05"),
        ("every month on the 5th at 9 x", "2026-12-05 09:00"),
        ("monthly on the 31st x", "2026-11-30 09:00"),
        ("every year on december 24 x", "2026-12-24 09:00"),
    ],
)
def test_dates(text: str, due: str):
    _, when = found(text)
    assert f"{datetime.fromtimestamp(when.due, BERLIN):%Y-%m-%d %H:%M}" == due
    assert when.rest == "x"


@pytest.mark.parametrize("text", ["", "tea", "5 apples", "call mom", "buy cable 5m", "am 1. Advent", "😀" * 200])
def test_a_text_without_a_time(text: str):
    with pytest.raises(NoTime, match=r"^$"):
        read(text, NOW, BERLIN)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("today at 10 x", "2026-11-23 10:00 is in the past: it is Monday, 2026-11-23 14:05 now (Europe/Berlin)."),
        ("2026-01-31 08:00 x", "2026-01-31 08:00 is in the past"),
        ("in 1000000 years x", "too far away"),
        ("in 999999999 days x", "too far away"),
        ("in 999999999 hours x", "too far away"),
        ("9000-01-01 x", "too far away"),
        ("31 february x", "There is no day 31 in the month 2."),
        ("2027-13-01 x", "There is no day 1 in the month 13 of 2027."),
        ("every month on the 32nd at 9 x", "The days of a month have the numbers from 1 to 31."),
        ("25:00 x", '"25:00" is not a time of day'),
        ("every 5000 days x", "numbers from 1 to 1,000"),
        ("every 0 minutes x", "numbers from 1 to 1,000"),
        ("every 5 seconds x", "more often than once a minute"),
        ("next friday at 9 x", '"Next" may mean Friday, 2026-11-27 or 2026-12-04. Say the date.'),
        ("at 9am PST call", '"PST" may mean several time zones. Name a place or the hours from UTC, such as: '),
        ("2026-12-01 09:00 IST pay", '"IST" may mean several'),
        ("tomorrow at 9 central time call", '"central time" may mean several'),
        ("tomorrow at 9 Mars/Base call", 'There is no time zone "Mars/Base".'),
        ("tomorrow at 9 UTC+15 call", '"UTC+15" is not a time zone'),
        ("every day at 9:00 +05:30 pills", "A reminder that repeats needs a place instead of UTC+05:30"),
    ],
)
def test_a_time_that_cannot_be_says_why(text: str, sentence: str):
    with pytest.raises(BadTime, match=re.escape(sentence)):
        read(text, NOW, BERLIN)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("every day but Sunday at 17:30 x", 'I can read "every day" as a time, but not what "but" adds to it.'),
        ("call Ann not tomorrow at 9", 'I can read "tomorrow at 9" as a time, but not what "not" adds to it.'),
        (
            "tomorrow buy 3 apples",
            'not what "3" adds to it. Put a colon after the whole time, such as: tomorrow at 9: ',
        ),
        ("17:30 go home", "Say it as in: at 17:30, or: monday 18:30."),
    ],
)
def test_what_is_not_read_whole_is_named(text: str, sentence: str):
    with pytest.raises(NoTime, match=re.escape(sentence)):
        read(text, NOW, BERLIN)


@pytest.mark.parametrize("text", ["call Bob", "the red one", "call the bank and say yes"])
def test_a_text_that_says_no_time(text: str):
    assert says_no_time(text)


@pytest.mark.parametrize("text", ["tomorrow", "call Bob at 9", "jeden Montag", "room 12", "25:00 x", "明天"])
def test_a_text_that_may_say_a_time(text: str):
    assert not says_no_time(text)


def test_an_exact_time_has_nothing_beside_it():
    assert (
        read_exactly("2026-11-24T09:00:00+00:00", NOW, BERLIN).due
        == datetime(2026, 11, 24, 10, tzinfo=BERLIN).timestamp()
    )
    assert read_exactly("2026-11-24T09:00", NOW, BERLIN).start == datetime(2026, 11, 24, 9)
    assert read_exactly(" tomorrow 09:00 ", NOW, BERLIN).start == datetime(2026, 11, 24, 9)
    with pytest.raises(NoTime):
        read_exactly("tomorrow 09:00 tea", NOW, BERLIN)
    with pytest.raises(BadTime):
        read_exactly("2026-11-22T09:00:00Z", NOW, BERLIN)


def test_a_span_goes_by_the_calendar_where_the_clocks_change():
    before = datetime(2026, 10, 24, 12, tzinfo=BERLIN).timestamp()
    assert read("in 1 day x", before, BERLIN).due - before == 25 * 3_600
    assert read("in 24 hours x", before, BERLIN).due - before == 24 * 3_600
    night = datetime(2026, 3, 28, 12, tzinfo=BERLIN).timestamp()
    assert read("tomorrow at 2:30 x", night, BERLIN).due == datetime(2026, 3, 29, 3, tzinfo=BERLIN).timestamp()


@pytest.mark.parametrize(
    ("said", "moment"),
    [
        ("2027-03-28 02:30 x", "2027-03-28 03:00+02:00"),  # the night has no 02:30
        ("2027-10-31 02:30 x", "2027-10-31 02:30+02:00"),  # the night has two
        ("2027-10-31 03:00 x", "2027-10-31 03:00+01:00"),
        ("every day at 2:30 x", "2026-11-24 02:30+01:00"),
    ],
)
def test_a_time_in_the_night_when_the_clocks_change_is_one_moment(said: str, moment: str):
    assert read(said, NOW, BERLIN).due == datetime.fromisoformat(moment).timestamp()


@pytest.mark.parametrize("unit", ["x", "1 ", "monday ", "每", "in 1h ", " ", "(", "every ", "at 9 ", "1h"])
def test_only_the_two_ends_of_a_long_text_are_read(unit: str, monkeypatch: pytest.MonkeyPatch):
    longest = 0

    def scanned(text: str, at: int = 0) -> Any:
        nonlocal longest
        longest = max(longest, len(text))
        return scan(text, at)

    scan = reading.scan
    monkeypatch.setattr(reading, "scan", scanned)
    with suppress(NoTime, BadTime):
        read(unit * 200_000, NOW, BERLIN)
    assert longest <= 121


@pytest.mark.parametrize(
    "said", ["in 1h30 tea", "tea in 1h30", "in 1h30m tea", "1h30m tea", "in 1h 30 minutes tea", "in 1 hour, 30 min tea"]
)
def test_hours_and_minutes_in_one_word_are_read_whole(said: str) -> None:
    found = read(said, NOW, BERLIN)
    assert (found.due - NOW, found.rest) == (5_400.0, "tea")
