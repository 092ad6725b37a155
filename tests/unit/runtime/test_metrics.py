"""Metrics and points: what is counted is what is shown, and the time between two points is measured."""

import asyncio

import pytest

from gateway.runtime.errors import ProviderRateLimited
from gateway.runtime.exposition import exposition
from gateway.runtime.metrics import Counter, Gauge, Histogram, Metrics, outcome_of
from gateway.runtime.points import Point, TimedPoints
from tests.support.fakes import ManualClock

SENDS = Counter(name="sends", text="Attempts.", labels=("platform", "outcome"))
SECONDS = Histogram(name="seconds", text="Times.", bounds=(1.0, 10.0))
DEPTH = Gauge(name="depth", text="How many wait.")


def test_a_counter_rises_for_each_combination_of_labels() -> None:
    metrics = Metrics()
    with metrics.counting():
        SENDS.count("fake", "sent")
        SENDS.count("fake", "sent", by=2)
        SENDS.count("fake", "refused")
    text = exposition(metrics)
    assert 'legato_sends_total{outcome="sent",platform="fake"} 3.0' in text
    assert 'legato_sends_total{outcome="refused",platform="fake"} 1.0' in text
    assert "# HELP legato_sends_total Attempts." in text


def test_a_histogram_counts_what_is_at_most_each_bound() -> None:
    metrics = Metrics()
    with metrics.counting():
        for value in (0.5, 5.0, 50.0):
            SECONDS.observe(value)
    text = exposition(metrics)
    assert 'legato_seconds_bucket{le="1.0"} 1.0' in text
    assert 'legato_seconds_bucket{le="10.0"} 2.0' in text
    assert "legato_seconds_count 3.0" in text
    assert "legato_seconds_sum 55.5" in text


def test_the_log_is_given_totals_only() -> None:
    metrics = Metrics()
    with metrics.counting():
        SENDS.count("fake", "sent")
        SECONDS.observe(5.0)
    assert metrics.totals() == {
        "legato_sends_total fake sent": 1.0,
        "legato_seconds_count": 1.0,
        "legato_seconds_sum": 5.0,
    }


async def test_a_gauge_is_asked_for_before_everything_is_shown() -> None:
    metrics = Metrics()
    depths = iter((4, 2))

    async def refresh() -> None:
        DEPTH.note(next(depths))

    metrics.refresh_with(refresh)
    assert "legato_depth 4.0" in exposition(await metrics.refreshed())
    assert "legato_depth 4.0" in exposition(metrics)
    assert "legato_depth 2.0" in exposition(await metrics.refreshed())


async def test_two_programs_in_one_process_share_no_number() -> None:
    one, other, may_count = Metrics(), Metrics(), asyncio.Event()

    async def send(outcome: str) -> None:
        await may_count.wait()
        SENDS.count("fake", outcome)

    async with asyncio.TaskGroup() as group:
        with one.counting():
            group.create_task(send("sent"))
        with other.counting():
            group.create_task(send("refused"))
        may_count.set()
    assert one.totals() == {"legato_sends_total fake sent": 1.0}
    assert other.totals() == {"legato_sends_total fake refused": 1.0}


def test_what_runs_in_no_program_is_not_counted() -> None:
    metrics = Metrics()
    with metrics.counting():
        pass
    SENDS.count("fake", "sent")
    DEPTH.note(1)
    SECONDS.observe(1.0)
    assert metrics.totals() == {}


def test_two_metrics_of_one_name_are_a_mistake() -> None:
    metrics = Metrics()
    with metrics.counting():
        DEPTH.note(1)
        with pytest.raises(ValueError, match="legato_depth"):
            Gauge(name="depth", text="Something else.").note(1)


def test_an_error_gives_its_class_as_a_label() -> None:
    assert outcome_of(ProviderRateLimited("slow down")) == "provider_rate_limited"


async def test_the_time_between_two_points_of_a_task_is_measured() -> None:
    clock, metrics, passed = ManualClock(), Metrics(), list[Point]()
    points = TimedPoints(passed.append, clock)
    with metrics.counting():
        points("turn.claimed")
        await clock.advance(3.0)
        points("turn.model_called")
        await clock.advance(1.0)
        points("turn.finished")
    assert passed == ["turn.claimed", "turn.model_called", "turn.finished"]
    text = exposition(metrics)
    assert 'legato_phase_seconds_sum{point="turn.model_called"} 3.0' in text
    assert 'legato_phase_seconds_sum{point="turn.finished"} 1.0' in text
    assert "turn.claimed" not in text


async def test_turns_beside_one_another_do_not_disturb_their_times() -> None:
    clock, metrics = ManualClock(), Metrics()
    points = TimedPoints(lambda _: None, clock)
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def long() -> None:
        points("turn.claimed")
        begun.set()
        await may_end.wait()
        points("turn.finished")

    async def short() -> None:
        points("accept.before")
        points("accept.after")

    with metrics.counting():
        async with asyncio.TaskGroup() as group:
            group.create_task(long())
            await begun.wait()
            await clock.advance(5.0)
            await group.create_task(short())
            may_end.set()
    assert 'legato_phase_seconds_sum{point="turn.finished"} 5.0' in exposition(metrics)
    assert 'legato_phase_seconds_sum{point="accept.after"} 0.0' in exposition(metrics)


async def test_a_first_point_begins_anew() -> None:
    clock, metrics = ManualClock(), Metrics()
    points = TimedPoints(lambda _: None, clock)
    with metrics.counting():
        points("turn.claimed")
        await clock.advance(60.0)
        points("turn.claimed")
        points("turn.finished")
    assert 'legato_phase_seconds_sum{point="turn.finished"} 0.0' in exposition(metrics)
