"""The numbers of a program in Prometheus's text format. Its library takes a twentieth of the start, so only who answers
monitors imports this module."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as PrometheusMetric
from prometheus_client.registry import Collector

from gateway.runtime.metrics import Gauge, Histogram, Metrics


def exposition(metrics: Metrics) -> str:
    """Everything counted; gauges as they were last noted."""
    registry = CollectorRegistry()
    registry.register(_Counted(metrics))
    return generate_latest(registry).decode()


class _Counted(Collector):
    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterator[PrometheusMetric]:
        for metric, numbers in self._metrics.series.items():
            name = f"legato_{metric.name}"
            if isinstance(metric, Histogram):
                bounds = [*map(str, metric.bounds), "+Inf"]
                histogram = HistogramMetricFamily(name, metric.text, labels=metric.labels)
                for labels, (total, *counts) in numbers.items():
                    histogram.add_metric(labels, [*zip(bounds, accumulate(counts), strict=True)], total)
                yield histogram
            else:
                family = (GaugeMetricFamily if isinstance(metric, Gauge) else CounterMetricFamily)(
                    name, metric.text, labels=metric.labels
                )
                for labels, (number,) in numbers.items():
                    family.add_metric(labels, number)
                yield family
