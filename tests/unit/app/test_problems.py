"""What the watchdog finds wrong, given the signs of a look."""

from __future__ import annotations

import pytest

from gateway.app.alerts import _risen
from gateway.app.problems import PlatformSigns, Signs, is_hopeless, problems

FINE = PlatformSigns(state="reads")


def kinds(signs: Signs, *before: Signs) -> list[tuple[str, str]]:
    return [each.name for each in problems(signs, before)]


def of(platform: PlatformSigns, at: float = 0.0) -> Signs:
    return Signs(at=at, platforms={"fake": platform})


@pytest.mark.parametrize(
    ("signs", "found"),
    [
        (Signs(at=0), []),
        (of(FINE), []),
        (of(PlatformSigns(state="stands by")), []),
        (of(PlatformSigns(state="ended")), [("platform_down", "fake")]),
        (of(PlatformSigns(state="pauses")), [("platform_down", "fake")]),
        (of(PlatformSigns(state="reads", still_for=301.0)), [("reader_still", "fake")]),
        (of(PlatformSigns(state="reads", deaf_for=10.0)), []),
        (of(PlatformSigns(state="reads", deaf_for=20.0)), [("deaf", "fake")]),
        (of(PlatformSigns(state="reads", failed_sends=2, fails_for=30.0)), []),
        (of(PlatformSigns(state="reads", failed_sends=9, fails_for=10.0)), []),  # a moment's trouble, or three who left
        (of(PlatformSigns(state="reads", failed_sends=3, fails_for=20.0)), [("sends_fail", "fake")]),
        (Signs(at=0, model="m", away="has no credit left"), [("model_away", "m")]),
        (Signs(at=0, model="m", silent_for=44.0), []),
        (Signs(at=0, model="m", silent_for=46.0), [("model_silent", "m")]),
        (Signs(at=0, model="m", silent_for=46.0, patience=90.0), []),
        (Signs(at=0, lost=16), [("process_gone", "")]),
        (Signs(at=0, idle={"fake": 44.0}), []),
        (Signs(at=0, idle={"fake": 46.0}), [("lane_still", "fake")]),
        (Signs(at=0, ended=("outbox",)), [("job_ended", "outbox")]),
        (Signs(at=0, lag=1.0), []),
        (Signs(at=0, lag=2.5), [("loop_lags", "")]),
        (Signs(at=0, writes_for=29.0), []),
        (Signs(at=0, writes_for=31.0), [("writer_still", "")]),
        (Signs(at=0, store_error="No route."), [("store_away", "")]),
        (Signs(at=0, free=600_000_000), []),
        (Signs(at=0, free=400_000_000), [("disk_low", "")]),
    ],
)
def test_a_sign_and_what_it_means(signs: Signs, found: list[tuple[str, str]]) -> None:
    assert kinds(signs) == found
    assert all(each.text for each in problems(signs, ()))


def test_only_a_write_that_hangs_for_minutes_is_hopeless() -> None:
    assert not is_hopeless(Signs(at=0, writes_for=299.0, lag=1_000.0, store_error="away"))
    assert is_hopeless(Signs(at=0, writes_for=300.0))


def rows(*counts: int) -> list[Signs]:
    """Looks at an outbox every half a minute."""
    return [of(PlatformSigns(state="reads", unsent=count), at=30.0 * number) for number, count in enumerate(counts)]


@pytest.mark.parametrize(
    ("counts", "grows"),
    [
        ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], True),
        ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9], False),  # too few
        ([0, 5, 10, 15, 20, 19, 30, 40, 50, 60, 70], False),  # one went out
        ([0, 20, 40], False),  # a minute says nothing
        ([50] * 11, False),  # they wait for their time, and none comes
    ],
)
def test_an_outbox_grows_if_nothing_goes_out_of_it_for_minutes(counts: list[int], grows: bool) -> None:
    *before, last = rows(*counts)
    assert kinds(last, *before) == ([("outbox_grows", "fake")] if grows else [])


def test_an_alert_comes_for_what_has_risen_since_the_last_look() -> None:
    before = Signs(at=0.0, dead=2, caps_met=1)
    assert _risen(before, Signs(at=1.0, dead=2, caps_met=1)) == {}
    assert _risen(before, Signs(at=1.0, dead=1)) == {}  # one was taken off
    assert list(_risen(before, Signs(at=1.0, dead=3, caps_met=1))) == ["dead_letters"]
    assert list(_risen(before, Signs(at=1.0, dead=2, caps_met=2))) == ["cap_met"]
