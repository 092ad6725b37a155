"""Pauses before another attempt, and rests that a platform asks for."""

from __future__ import annotations

import pytest

from gateway.runtime.backoff import Backoff, Rests
from gateway.runtime.errors import AdapterError, RateLimited
from tests.support.fakes import ManualClock


def test_each_pause_is_twice_as_long_up_to_the_longest_until_an_attempt_succeeds() -> None:
    backoff = Backoff(first=1.0, longest=5.0)
    assert [backoff.pause() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    assert backoff.failures == 5
    backoff.reset()
    assert backoff.pause() == 1.0
    assert Backoff(first=1.0, longest=5.0, failures=100_000).pause() == 5.0


async def test_a_place_is_left_alone_as_long_as_it_asked_and_no_other_is(clock: ManualClock) -> None:
    rests = Rests(platform="fake", clock=clock)
    rests.heard("a", AdapterError("broken"))
    rests.check("a")
    rests.heard("a", RateLimited("slow down", retry_after=10.0))
    rests.check("b")
    await clock.advance(9.0)
    with pytest.raises(RateLimited, match="fake asked to wait, for 1 s more") as raised:
        rests.check("a")
    assert raised.value.retry_after == pytest.approx(1.0)
    await clock.advance(1.0)
    rests.check("a")
