"""How often a conversation is told of something, and how often it may do something."""

from __future__ import annotations

import pytest

from gateway.domain.chat import SessionKey
from gateway.turns import notices
from gateway.turns.notices import Quota, Throttle

ANNA, BEN = (SessionKey(platform="fake", chat=name, user=name) for name in ("anna", "ben"))


@pytest.mark.parametrize(("now", "due", "left"), [(5.0, True, 30.0), (34.9, False, 0.1), (35.0, True, 30.0)])
def test_a_notice_comes_once_in_a_while(now: float, due: bool, left: float) -> None:
    throttle = Throttle()
    assert (throttle.left(ANNA, 5.0), throttle.due(ANNA, 5.0)) == (0.0, True)
    throttle.told[ANNA] = 5.0 if now > 5.0 else throttle.told.pop(ANNA) - 60.0
    assert throttle.due(ANNA, now) is due
    assert throttle.left(ANNA, now) == pytest.approx(left)
    assert throttle.due(BEN, now)


def test_who_could_not_be_told_may_be_told_at_once() -> None:
    throttle = Throttle()
    assert throttle.due(ANNA, 0.0)
    throttle.forget(ANNA)
    assert throttle.due(ANNA, 1.0)
    throttle.forget(BEN)  # who was never told


def test_a_quota_counts_what_happened_within_its_time() -> None:
    quota = Quota(most=2, seconds=60.0)
    for now in (0.0, 30.0):
        quota.take(ANNA, now)
    assert [quota.left(ANNA, now) for now in (59.9, 60.0, 89.9, 90.0)] == [0, 1, 1, 2]
    assert quota.left(BEN, 30.0) == 2


def test_what_is_over_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "_REMEMBERED", 1)
    throttle, quota = Throttle(), Quota(most=2, seconds=30.0)
    carl = SessionKey(platform="fake", chat="carl")
    for key, now in ((ANNA, 0.0), (BEN, 10.0), (carl, 30.0)):
        assert throttle.due(key, now)
        quota.take(key, now)
    assert list(throttle.told) == [BEN, carl]
    assert list(quota._taken) == [BEN, carl]
