"""Times in people's words, read on Monday, 2026-11-23, 14:05:30 in Berlin."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from gateway.domain import when as when_module
from gateway.domain.when import BadTime, NoTime, When, read, read_exactly

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 23, 14, 5, 30, tzinfo=BERLIN).timestamp()

ONCE = """
in 20 minutes tea | 23 14:25:30 | tea
tea in 20 minutes | 23 14:25:30 | tea
10m tea | 23 14:15:30 | tea
1h30m check the oven | 23 15:35:30 | check the oven
in 1 hour and 30 minutes check | 23 15:35:30 | check
in half an hour x | 23 14:35:30 | x
me to call mom tomorrow at 9 | 24 09:00:00 | call mom
tomorrow call mom at 9 | 24 09:00:00 | call mom
tomorrow at 9 call mom | 24 09:00:00 | call mom
tomorrow morning jog | 24 09:00:00 | jog
tonight take out trash | 23 20:00:00 | take out trash
at 9 stand up | 24 09:00:00 | stand up
at 5pm stand up | 23 17:00:00 | stand up
17:30 go home | 23 17:30:00 | go home
monday 18:30 gym | 23 18:30:00 | gym
next monday gym | 30 09:00:00 | gym
call Ann tomorrow 9 | 24 09:00:00 | call Ann
friday pay rent | 27 09:00:00 | pay rent
in 3 days at 8 x | 26 08:00:00 | x
this evening x | 23 19:00:00 | x
this report tomorrow at 9 | 24 09:00:00 | this report
lunch at noon | 24 12:00:00 | lunch
at 10:00 in the evening x | 23 22:00:00 | x
x tomorrow at 9. | 24 09:00:00 | x
tomorrow at nine call mum | 24 09:00:00 | call mum
at eight in the evening dinner | 23 20:00:00 | dinner
tomorrow at half past nine x | 24 09:30:00 | x
a quarter to six pm x | 23 17:45:00 | x
tomorrow at 8: summarise the news | 24 08:00:00 | summarise the news
tomorrow at 9 o'clock x | 24 09:00:00 | x
tomorrow at one party | 24 01:00:00 | party
tomorrow at a party | 24 09:00:00 | at a party
morgen um neun Mama anrufen | 24 09:00:00 | Mama anrufen
morgen um halb neun Zahnarzt | 24 08:30:00 | Zahnarzt
mañana a las nueve llamar | 24 09:00:00 | llamar
demain à neuf heures appeler | 24 09:00:00 | appeler
demain dîner à trois | 24 09:00:00 | dîner à trois
завтра в девять позвонить | 24 09:00:00 | позвонить
in 10 Minuten Tee | 23 14:15:30 | Tee
morgen um 9 Uhr Mama anrufen | 24 09:00:00 | Mama anrufen
morgen früh Zahnarzt | 24 09:00:00 | Zahnarzt
übermorgen Zahnarzt um 10:30 | 25 10:30:00 | Zahnarzt
am Freitag um 18 Uhr Sport | 27 18:00:00 | Sport
через 10 минут чай | 23 14:15:30 | чай
через час чай | 23 15:05:30 | чай
завтра в 9 позвонить маме | 24 09:00:00 | позвонить маме
послезавтра в 18:00 театр | 25 18:00:00 | театр
в понедельник в 10 встреча | 30 10:00:00 | встреча
в 6 вечера ужин | 23 18:00:00 | ужин
dentro de 10 minutos té | 23 14:15:30 | té
mañana a las 9 llamar | 24 09:00:00 | llamar
a las 9 de la tarde cenar | 23 21:00:00 | cenar
demain à 9h30 appeler | 24 09:30:00 | appeler
10分钟后喝茶 | 23 14:15:30 | 喝茶
半小时后开会 | 23 14:35:30 | 开会
两小时后开会 | 23 16:05:30 | 开会
明天早上9点开会 | 24 09:00:00 | 开会
后天下午3点半看牙医 | 25 15:30:00 | 看牙医
下周一10点开会 | 30 10:00:00 | 开会
晚上8点看电影 | 23 20:00:00 | 看电影
""".strip().splitlines()

REPEATED = """
each weekday at 8: what is new? | 24 08:00 | every weekday | what is new?
every day at nine pills | 24 09:00 | every day | pills
every weekday at 8 what is new | 24 08:00 | every weekday | what is new
daily at 8 pills | 24 08:00 | every day | pills
take pills every day at 8:30 | 24 08:30 | every day | take pills
every monday and thursday at 7 bins | 26 07:00 | every Monday and Thursday | bins
every 2 hours drink | 23 16:05 | every 2 hours | drink
every other day at 9 x | 25 09:00 | every 2 days | x
jeden Tag um 8 Tabletten | 24 08:00 | every day | Tabletten
jeden Montag um 8 Müll | 30 08:00 | every Monday | Müll
alle 2 Stunden trinken | 23 16:05 | every 2 hours | trinken
werktags um 8 Nachrichten | 24 08:00 | every weekday | Nachrichten
каждый день в 8 таблетки | 24 08:00 | every day | таблетки
каждые 2 часа пить | 23 16:05 | every 2 hours | пить
по будням в 8 новости | 24 08:00 | every weekday | новости
todos los días a las 8 pastillas | 24 08:00 | every day | pastillas
chaque jour à 8h médicaments | 24 08:00 | every day | médicaments
tous les lundis à 8h poubelle | 30 08:00 | every Monday | poubelle
每天早上8点吃药 | 24 08:00 | every day | 吃药
每周一9点开会 | 30 09:00 | every Monday | 开会
每2小时喝水 | 23 16:05 | every 2 hours | 喝水
每个工作日8点新闻 | 24 08:00 | every weekday | 新闻
""".strip().splitlines()


def found(text: str) -> tuple[str, When]:
    when = read(text, NOW, BERLIN)
    return f"{datetime.fromtimestamp(when.due, BERLIN):%d %H:%M:%S}", when


def as_read(text: str) -> list[str]:
    """Return the rest of a line of the tables."""
    try:
        local, when = found(text)
    except (BadTime, NoTime) as error:
        return [str(error)]
    return [local[:-3], when.rule.said, when.rest] if when.rule else [local, when.rest]


@pytest.mark.parametrize("lines", [ONCE, REPEATED], ids=["once", "again"])
def test_a_time_and_what_is_to_be_said(lines: list[str]):
    wrong = []
    for line in lines:
        text, *expected = line.split(" | ")
        if (read_as := as_read(text)) != expected:
            wrong.append(f"{line}, but read as {read_as}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("text", "due"),
    [
        ("2027-01-31 08:00 x", "2027-01-31 08:00"),
        ("2027-01-31T08:00 x", "2027-01-31 08:00"),
        ("on 2027-01-31 at 08:00 x", "2027-01-31 08:00"),
        ("on 5 December at 10 x", "2026-12-05 10:00"),
        ("december 5th at 10am x", "2026-12-05 10:00"),
        ("5.12. um 10 Uhr x", "2026-12-05 10:00"),
        ("24.12.2026 x", "2026-12-24 09:00"),
        ("29 february x", "2028-02-29 09:00"),
        ("5月3日 x", "2027-05-03 09:00"),
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


@pytest.mark.parametrize(
    "text", ["", "tea", "5 apples", "call mom", "in a while tea", "2 days before christmas", "buy cable 5m", "😀" * 200]
)
def test_no_time_is_guessed(text: str):
    with pytest.raises(NoTime):
        read(text, NOW, BERLIN)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("today at 10 x", "2026-11-23 10:00 is in the past: it is Monday, 2026-11-23 14:05 now (Europe/Berlin)."),
        ("2026-01-31 08:00 x", "2026-01-31 08:00 is in the past"),
        ("yesterday at 9 x", "2026-11-22 09:00 is in the past"),
        ("in 1000000 years x", "too far away"),
        ("in 999999999 days x", "too far away"),
        ("in 999999999 hours x", "too far away"),
        ("1000000-01-01 x", "The year 1000000 is too far away"),
        ("31 february x", "There is no day 31 in the month 2."),
        ("2027-13-01 x", "There is no day 1 in the month 13 of 2027."),
        ("25:00 x", '"25:00" is no time of day'),
        ("every 5000 days x", "a number from 1 to 1,000"),
        ("every 0 minutes x", "a number from 1 to 1,000"),
        ("every 5 seconds x", "more often than each minute"),
    ],
)
def test_a_time_that_cannot_be_says_why(text: str, sentence: str):
    with pytest.raises(BadTime, match=re.escape(sentence)):
        read(text, NOW, BERLIN)


def test_an_exact_time_has_nothing_beside_it():
    assert read_exactly("2026-11-24T09:00:00+00:00", NOW, BERLIN).start == datetime(2026, 11, 24, 10)
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

    def scanned(text: str, at: int) -> Any:
        nonlocal longest
        longest = max(longest, len(text))
        return scan(text, at)

    scan = when_module._scan
    monkeypatch.setattr(when_module, "_scan", scanned)
    with suppress(NoTime, BadTime):
        read(unit * 200_000, NOW, BERLIN)
    assert longest <= 121
