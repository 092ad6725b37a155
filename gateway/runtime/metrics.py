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
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from msgspec import Struct

_SECONDS: Final = (0.005, 0.02, 0.1, 0.5, 2.0, 5.0, 15.0, 60.0, 300.0)


class _Metric(Struct, frozen=True, kw_only=True, eq=False):
    name: str  # without the prefix "legato_" and without the ending that Prometheus gives to a counter
    text: str  # one sentence
    labels: tuple[str, ...] = ()


class Counter(_Metric, frozen=True, kw_only=True, eq=False):
    """A number that only rises."""

    def count(self, *labels: str, by: float = 1) -> None:
        """Add to the number; `labels` in the metric's order."""
        if (metrics := _present.get()) is not None:
            metrics.series[self][labels][0] += by


class Gauge(_Metric, frozen=True, kw_only=True, eq=False):
    """A number as it is now."""

    def note(self, value: float, *labels: str) -> None:
        """Set the number."""
        if (metrics := _present.get()) is not None:
            metrics.series[self][labels][0] = value


class Histogram(_Metric, frozen=True, kw_only=True, eq=False):
    """A count of values below each bound; times are in seconds."""

    bounds: tuple[float, ...] = _SECONDS

    def observe(self, value: float, *labels: str) -> None:
        """Enter one value."""
        if (metrics := _present.get()) is not None:
            series = metrics.series[self][labels]
            series[0] += value
            series[1 + bisect_left(self.bounds, value)] += 1


class _OfMetric(dict[tuple[str, ...], list[float]]):
    """The numbers of a metric by its labels: one, or of a histogram the sum, then how many values lay in each interval.
    They are there once they are asked for. Raises ValueError for another number of labels than the metric's."""

    def __init__(self, metric: _Metric) -> None:
        super().__init__()
        self._metric = metric

    def __missing__(self, labels: tuple[str, ...]) -> list[float]:
        metric = self._metric
        if len(labels) != len(metric.labels):
            raise ValueError(f"{metric.name} has the labels {metric.labels}, and was given {labels}")
        size = 2 + len(metric.bounds) if isinstance(metric, Histogram) else 1
        return self.setdefault(labels, [0.0] * size)


class _Series(dict[_Metric, _OfMetric]):
    """The numbers of all metrics. Raises ValueError for a metric whose name is another's."""

    def __missing__(self, metric: _Metric) -> _OfMetric:
        if any(metric.name == other.name for other in self):
            raise ValueError(f"two metrics are named legato_{metric.name}")
        return self.setdefault(metric, _OfMetric(metric))


class Metrics:
    """The numbers of one program, counted on the thread of its event loop."""

    def __init__(self) -> None:
        self.series = _Series()  # for those who count: without a call, where it was counted before
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
        """Await `refresh` at each `refreshed`: for a gauge whose value is asked for."""
        self._refreshers.append(refresh)

    async def refreshed(self) -> Metrics:
        """These numbers, with fresh gauges."""
        with self.counting():
            for refresh in self._refreshers:
                await refresh()
        return self

    def totals(self) -> dict[str, float]:
        """Everything counted in short, for a line of the log: a histogram is its count and its sum."""
        totals: dict[str, float] = {}
        for metric, numbers in self.series.items():
            for labels, (number, *counts) in numbers.items():
                ends = {"": number}
                if isinstance(metric, Counter):
                    ends = {"_total": number}
                elif isinstance(metric, Histogram):
                    ends = {"_count": sum(counts), "_sum": number}
                totals |= {" ".join((f"legato_{metric.name}{end}", *labels)): each for end, each in ends.items()}
        return totals

    def counts(self, metric: Counter | Histogram) -> dict[tuple[str, ...], float]:
        """How often each series of a metric was counted, or observed, by its labels in the metric's order."""
        first = 1 if isinstance(metric, Histogram) else 0
        return {labels: sum(series[first:]) for labels, series in self.series.get(metric, {}).items()}


_present: Final = ContextVar[Metrics | None]("present_metrics", default=None)


def outcome_of(error: Exception) -> str:
    """An error's class as the value of a label: "rate_limited"."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", type(error).__name__).lower()
