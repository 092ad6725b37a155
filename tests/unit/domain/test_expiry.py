"""The end of a quiet session, summer time included."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.expiry import ExpiryPolicy

HOUR = 3_600.0
ZONES = [
    ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Asia/Kathmandu")
]
moments = st.floats(0, 4_000_000_000, allow_nan=False)
times = st.times().map(lambda moment: moment.replace(second=0, microsecond=0))


@given(moments, st.integers(1, 100_000))
def test_idle_counts_from_the_last_turn(last: float, minutes: int) -> None:
    policy = ExpiryPolicy(mode="idle", idle_minutes=minutes)
    assert policy.deadline(last) == last + 60 * minutes


@given(moments, times, st.sampled_from(ZONES))
def test_daily_is_the_next_such_hour_on_the_wall(last: float, at: time, zone: ZoneInfo) -> None:
    due = ExpiryPolicy(mode="daily", daily_at=f"{at:%H:%M}", timezone=zone.key).deadline(last)
    assert due is not None
    assert 0 < due - last <= 26 * HOUR
    local = datetime.fromtimestamp(due, zone)
    skipped = datetime.combine(local.date(), at, zone).astimezone(UTC).astimezone(zone).time() != at
    assert local.time() == at or skipped


@given(moments, st.integers(1, 3_000), times, st.sampled_from(ZONES))
def test_both_is_whichever_comes_first_and_none_is_never(last: float, minutes: int, at: time, zone: ZoneInfo) -> None:
    def deadline(mode: str) -> float | None:
        return ExpiryPolicy(mode=mode, idle_minutes=minutes, daily_at=f"{at:%H:%M}", timezone=zone.key).deadline(last)  # type: ignore[arg-type]

    idle, daily = deadline("idle"), deadline("daily")
    assert idle is not None
    assert daily is not None
    assert deadline("both") == min(idle, daily)
    assert deadline("none") is None


@given(moments, st.floats(0, 90_000), times, st.sampled_from(ZONES))
def test_a_later_turn_is_never_due_earlier(last: float, later: float, at: time, zone: ZoneInfo) -> None:
    policy = ExpiryPolicy(mode="daily", daily_at=f"{at:%H:%M}", timezone=zone.key)
    first, second = policy.deadline(last), policy.deadline(last + later)
    assert first is not None
    assert second is not None
    assert second >= first


@pytest.mark.parametrize(
    ("last", "due"),
    [
        ("2026-03-28 23:00", "2026-03-29 04:00"),  # five hours on the wall, four in truth
        ("2026-10-24 23:00", "2026-10-25 04:00"),  # five hours on the wall, six in truth
        ("2026-07-01 03:59", "2026-07-01 04:00"),
        ("2026-07-01 04:00", "2026-07-02 04:00"),
        ("2026-12-31 12:00", "2027-01-01 04:00"),
    ],
)
def test_four_in_the_morning_in_berlin(last: str, due: str) -> None:
    berlin = ZoneInfo("Europe/Berlin")
    policy = ExpiryPolicy(mode="daily", daily_at="04:00", timezone="Europe/Berlin")
    start = datetime.fromisoformat(last).replace(tzinfo=berlin).timestamp()
    assert policy.deadline(start) == datetime.fromisoformat(due).replace(tzinfo=berlin).timestamp()


def test_an_hour_that_the_clocks_skip_or_repeat_comes_once() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    policy = ExpiryPolicy(mode="daily", daily_at="02:30", timezone="Europe/Berlin")
    for day in (datetime(2026, 3, 29, tzinfo=berlin), datetime(2026, 10, 25, tzinfo=berlin)):
        moment, end, dues = day.timestamp(), (day + timedelta(days=1)).timestamp(), set()
        while moment < end:
            dues.add(policy.deadline(moment))
            moment += 600
        assert len(dues) == 2  # this night's and the next
