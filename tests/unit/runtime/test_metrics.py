"""Metrics: what is counted is what is shown, and one program's numbers are not another's."""

import pytest

from gateway.runtime.errors import ProviderRateLimited
from gateway.runtime.metrics import Counter, Gauge, Histogram, Metrics, outcome_of

SENDS = Counter(name="sends", text="Attempts.", labels=("platform", "outcome"))
SECONDS = Histogram(name="seconds", text="Times.", bounds=(1.0, 10.0))
DEPTH = Gauge(name="depth", text="How many wait.")


def test_a_counter_rises_for_each_combination_of_labels() -> None:
    metrics = Metrics()
    metrics.count(SENDS, "fake", "sent")
    metrics.count(SENDS, "fake", "sent", by=2)
    metrics.count(SENDS, "fake", "refused")
    text = metrics.text()
    assert 'legato_sends_total{outcome="sent",platform="fake"} 3.0' in text
    assert 'legato_sends_total{outcome="refused",platform="fake"} 1.0' in text
    assert "# HELP legato_sends_total Attempts." in text


def test_a_histogram_counts_what_is_at_most_each_bound() -> None:
    metrics = Metrics()
    for value in (0.5, 5.0, 50.0):
        metrics.observe(SECONDS, value)
    text = metrics.text()
    assert 'legato_seconds_bucket{le="1.0"} 1.0' in text
    assert 'legato_seconds_bucket{le="10.0"} 2.0' in text
    assert "legato_seconds_count 3.0" in text
    assert "legato_seconds_sum 55.5" in text


def test_the_log_is_given_totals_only() -> None:
    metrics = Metrics()
    metrics.count(SENDS, "fake", "sent")
    metrics.observe(SECONDS, 5.0)
    assert metrics.totals() == {
        "legato_sends_total fake sent": 1.0,
        "legato_seconds_count": 1.0,
        "legato_seconds_sum": 5.0,
    }


async def test_a_gauge_is_asked_for_before_everything_is_shown() -> None:
    metrics = Metrics()
    depths = iter((4, 2))

    async def refresh() -> None:
        metrics.note(DEPTH, next(depths))

    metrics.refresh_with(refresh)
    assert "legato_depth 4.0" in await metrics.exposition()
    assert "legato_depth 4.0" in metrics.text()
    assert "legato_depth 2.0" in await metrics.exposition()


def test_two_programs_in_one_process_share_no_number() -> None:
    one, other = Metrics(), Metrics()
    one.count(SENDS, "fake", "sent")
    assert "legato_sends" not in other.text()


def test_two_metrics_of_one_name_are_a_mistake() -> None:
    metrics = Metrics()
    metrics.note(DEPTH, 1)
    with pytest.raises(ValueError, match="legato_depth"):
        metrics.note(Gauge(name="depth", text="Something else."), 1)


def test_an_error_gives_its_class_as_a_label() -> None:
    assert outcome_of(ProviderRateLimited("slow down")) == "provider_rate_limited"
