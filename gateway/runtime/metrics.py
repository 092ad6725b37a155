"""Numbers for operators: turns, tokens, sends, anything that a room counts.

A metric is described once, as a constant of the module that counts it:

    SENDS = Counter(name="sends", text="Attempts to show a message.", labels=("platform", "outcome"))

    SENDS.count("fake", "sent")

The numbers are those of the program that runs: `Gateway.run` counts into its `Metrics`, and so does every task that is
started from there. Outside of a program nothing is counted. Each combination of labels is kept in memory for the life
of the process, so a label takes a few dozen values at most, and never a chat, a person or a text.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import prometheus_client

_SECONDS: Final = (0.005, 0.02, 0.1, 0.5, 2.0, 5.0, 15.0, 60.0, 300.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Metric:
    name: str  # without the prefix "legato_" and without the ending that Prometheus gives to a counter
    text: str  # one sentence
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Counter(_Metric):
    """A number that only rises."""

    def count(self, *labels: str, by: float = 1) -> None:
        """Add to the number; `labels` in the metric's order."""
        if (metrics := _present.get()) is not None:
            metrics.series(self, labels).inc(by)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gauge(_Metric):
    """A number as it is now."""

    def note(self, value: float, *labels: str) -> None:
        """Set the number."""
        if (metrics := _present.get()) is not None:
            metrics.series(self, labels).set(value)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram(_Metric):
    """A count of values below each bound; times are in seconds."""

    bounds: tuple[float, ...] = _SECONDS

    def observe(self, value: float, *labels: str) -> None:
        """Enter one value."""
        if (metrics := _present.get()) is not None:
            metrics.series(self, labels).observe(value)


_KINDS: Final[Mapping[type[_Metric], Any]] = {
    Counter: prometheus_client.Counter,
    Gauge: prometheus_client.Gauge,
    Histogram: prometheus_client.Histogram,
}


class Metrics:
    """The numbers of one program."""

    def __init__(self) -> None:
        self._registry = prometheus_client.CollectorRegistry()
        self._families: dict[_Metric, Any] = {}
        self._series: dict[tuple[_Metric, tuple[str, ...]], Any] = {}
        self._refreshers: list[Callable[[], Awaitable[None]]] = []

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what the block counts, and the tasks that are started in it."""
        before = _present.set(self)
        try:
            yield
        finally:
            _present.reset(before)

    def refresh_with(self, refresh: Callable[[], Awaitable[None]]) -> None:
        """Await `refresh` before each `exposition`: for a gauge whose value is asked for."""
        self._refreshers.append(refresh)

    async def exposition(self) -> str:
        """Everything counted, with fresh gauges, in Prometheus's text format."""
        with self.counting():
            for refresh in self._refreshers:
                await refresh()
        return self.text()

    def text(self) -> str:
        """Everything counted, in Prometheus's text format; gauges as they were last noted."""
        return prometheus_client.generate_latest(self._registry).decode()

    def totals(self) -> dict[str, float]:
        """The same in short, for a line of the log: a histogram is its count and its sum."""
        samples = (sample for family in self._registry.collect() for sample in family.samples)
        return {
            " ".join((sample.name, *sample.labels.values())): sample.value
            for sample in samples
            if not sample.name.endswith(("_bucket", "_created"))
        }

    def counts(self, metric: Counter | Histogram) -> dict[tuple[str, ...], float]:
        """How often each series of a metric was counted, or observed, by its labels in the metric's order."""
        ending = "_count" if isinstance(metric, Histogram) else "_total"
        family = self._families.get(metric)
        samples = (each for found in family.collect() for each in found.samples) if family else ()
        return {
            tuple(each.labels[name] for name in metric.labels): each.value
            for each in samples
            if each.name.endswith(ending)
        }

    def series(self, metric: _Metric, labels: tuple[str, ...]) -> Any:
        """Return Prometheus's object for a metric with these labels. Raises ValueError if another metric has its
        name."""
        series = self._series.get((metric, labels))
        if series is None:
            family = self._families.get(metric) or self._register(metric)
            series = self._series[metric, labels] = family.labels(*labels) if labels else family
        return series

    def _register(self, metric: _Metric) -> Any:
        more = {"buckets": metric.bounds} if isinstance(metric, Histogram) else {}
        family = _KINDS[type(metric)](
            metric.name, metric.text, metric.labels, namespace="legato", registry=self._registry, **more
        )
        self._families[metric] = family
        return family


_present: Final = ContextVar[Metrics | None]("present_metrics", default=None)


def outcome_of(error: Exception) -> str:
    """An error's class as the value of a label: "rate_limited"."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
