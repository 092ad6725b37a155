"""Moments to send at: no limit is ever broken, nobody waits longer than the limits ask."""

from __future__ import annotations

from bisect import insort
from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.adapter import GRACE, Rate, earliest
from gateway.store.steps import pace
from tests.support.fakes import ManualClock
from tests.support.rates import Rates

limits = st.builds(Rate, bucket=st.sampled_from("abc"), most=st.integers(1, 4), seconds=st.integers(1, 8).map(float))


def kept(moments: list[float], rate: Rate) -> bool:
    """Say whether no stretch of the limit's length holds more than it may."""
    return all(last - first >= rate.seconds for first, last in zip(moments, moments[rate.most :], strict=False))


@given(st.lists(st.integers(0, 20).map(float)), st.integers(1, 4), st.integers(1, 8).map(float), st.integers(0, 20))
def test_the_moment_found_is_the_first_that_is_free(given_away, most, seconds, at):
    rate = Rate(bucket="a", most=most, seconds=seconds)
    taken: list[float] = []
    for moment in given_away:
        insort(taken, earliest([taken], [rate], moment))
    assert kept(taken, rate)
    found = earliest([taken], [rate], float(at))
    assert found >= at
    assert kept(sorted([*taken, found]), rate)
    for earlier in range(at, int(found)):
        assert not kept(sorted([*taken, float(earlier)]), rate)


@given(
    st.lists(limits, min_size=1, max_size=3, unique_by=lambda rate: rate.bucket),
    st.lists(st.tuples(st.sets(st.sampled_from("abc"), min_size=1), st.integers(0, 3)), max_size=40),
)
def test_whatever_is_asked_for_no_limit_is_broken(known, asked):
    """Tickets under any of the limits, while time passes."""
    rates, now = Rates(), 0.0
    moments: dict[str, list[float]] = defaultdict(list)
    for number, (buckets, passing) in enumerate(asked):
        now += passing
        under = [rate for rate in known if rate.bucket in buckets]
        wait = rates.take("bot", f"t{number}", under, now)
        for rate in under:
            moments[rate.bucket].append(now + wait)
    for rate in known:
        assert kept(sorted(moments[rate.bucket]), rate)


async def test_a_waiter_sends_when_its_moment_comes_and_not_long_after() -> None:
    clock, rates, limit = ManualClock(), Rates(), [Rate(bucket="all", most=1, seconds=10.0)]

    def take(ticket: str) -> float:
        return rates.take("bot", ticket, limit, clock.monotonic())

    assert [take("t1"), take("t2"), take("t3")] == [0.0, 10.0, 20.0]
    await clock.advance(10.0 + GRACE)
    assert take("t2") == 0.0
    assert take("t2") == 30.0 - clock.monotonic()  # used up: it is another message now
    await clock.advance(9.0 + GRACE + 0.5)
    # `t3` slept too long: its moment is gone, and the next free one is after the others'.
    assert take("t3") == 40.0 - clock.monotonic()


async def test_a_silence_moves_those_who_wait() -> None:
    clock, rates, limit = ManualClock(), Rates(), [Rate(bucket="chat", most=2, seconds=1.0)]

    def take(ticket: str) -> float:
        return rates.take("bot", ticket, limit, clock.monotonic())

    assert [take("t1"), take("t2"), take("t3")] == [0.0, 0.0, 1.0]
    rates.hold_off("bot", "chat", clock.monotonic() + 30.0)
    await clock.advance(1.0)
    assert [take("t3"), take("t4"), take("t5")] == [29.0, 29.0, 30.0]
    await clock.advance(29.0)
    assert [take("t3"), take("t4")] == [0.0, 0.0]


def test_what_nobody_can_ask_for_any_more_is_let_go(monkeypatch) -> None:
    monkeypatch.setattr(pace, "_MANY", 10)
    rates = Rates()
    for number in range(50):
        rates.take("bot", f"t{number}", [Rate(bucket=f"chat {number}", most=1, seconds=1.0)], number / 10)
        rates.take("bot", f"u{number}", [Rate(bucket=f"chat {number}", most=1, seconds=1.0)], number / 10)
    rates.take("bot", "late", [Rate(bucket="all", most=1, seconds=1.0)], 1_000.0)
    assert len(rates.space.documents) == 1
