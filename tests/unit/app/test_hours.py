"""The turns of the last hours, as the operator's page shows them."""

from __future__ import annotations

from gateway.app.hours import Hours
from gateway.domain.views import Hour

HOUR = 3_600


def test_each_hour_has_the_turns_that_ended_in_it() -> None:
    hours = Hours(bounds=(1.0, 5.0))
    hours.note(10 * HOUR + 30, [[3.0, 2, 0, 0]])
    hours.note(10 * HOUR + 1_800, [[9.0, 19, 1, 0], [2.0, 0, 0, 0]])
    hours.note(11 * HOUR + 1, [[9.0, 19, 1, 0], [70.0, 0, 0, 1]])
    hours.note(11 * HOUR + 900, [[9.0, 19, 3, 0], [70.0, 0, 0, 1]])
    assert hours.all() == [
        Hour(began_at=10 * HOUR, turns=20, within=1.0),
        Hour(began_at=11 * HOUR, turns=3, within=None),
    ]


def test_each_hour_has_what_it_spent_and_its_fullest_window() -> None:
    hours = Hours(bounds=(1.0,), shares=(0.5, 0.85))
    hours.note(10 * HOUR, [[1.0, 1, 0]], [[0.4, 1, 0, 0]], usd=0.25, tokens=100.0)
    hours.note(11 * HOUR, [[1.0, 2, 0]], [[1.2, 1, 1, 0]], usd=0.25, tokens=300.0)
    hours.note(11 * HOUR + 9, [[1.0, 2, 0]], [[3.0, 1, 1, 1]], usd=1.25, tokens=350.0)
    hours.note(12 * HOUR, [[1.0, 2, 0]], [[3.0, 1, 1, 1]], usd=1.25, tokens=350.0)
    assert [(each.usd, each.tokens, each.fullest) for each in hours.all()] == [
        (0.25, 100, 0.5),
        (1.0, 250, 1.0),
        (0, 0, 0),
    ]


def test_a_day_is_kept_and_nothing_is_known_before_the_first_look() -> None:
    hours = Hours(bounds=(1.0,))
    assert hours.all() == []
    for number in range(30):
        hours.note(number * HOUR, [[0.0, number, 0]])
    kept = hours.all()
    assert [len(kept), kept[0].began_at, kept[-1]] == [24, 6 * HOUR, Hour(began_at=29 * HOUR, turns=1, within=1.0)]


def test_a_turn_longer_than_all_that_is_counted_is_within_nothing_known() -> None:
    hours = Hours(bounds=(1.0,))
    hours.note(0, [[900.0, 0, 1]])
    assert hours.all() == [Hour(began_at=0, turns=1, within=None)]
