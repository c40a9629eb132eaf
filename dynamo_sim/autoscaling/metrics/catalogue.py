"""The metrics a controller can ask for (`spec 10, 8.2`)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """How a metric is kept, and so what can be asked of it."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    RATIO = "ratio"
    """Increase of one counter for each unit of another."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: how policies call it.
        kind: what can be asked of it.
        unit: of its values; times are in ms.
        per_worker: whether every worker has its own; else there is one for the whole fleet.
        columns: what has to be sampled for it: names of gauges and counters.
        ceiling: the largest value one worker can ever show, where the metric itself sets one.
    """

    name: str
    kind: Kind
    unit: str
    per_worker: bool = True
    columns: tuple[str, ...] = ()
    ceiling: float | None = None


def _gauge(name: str, unit: str, per_worker: bool = True, ceiling: float | None = None) -> Metric:
    return Metric(name, Kind.GAUGE, unit, per_worker, (name,), ceiling)


def _counter(name: str, unit: str, per_worker: bool = True) -> Metric:
    return Metric(name, Kind.COUNTER, unit, per_worker, (name,))


def _histogram(name: str) -> Metric:
    return Metric(name, Kind.HISTOGRAM, "ms")


METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        _gauge("in_flight", "requests"),
        _gauge("running", "requests"),
        _gauge("waiting", "requests"),
        _gauge("kv_usage", "share", ceiling=1.0),
        _gauge("active_decode_blocks", "blocks"),
        _gauge("active_prefill_tokens", "tokens"),
        _gauge("router_queue", "requests", per_worker=False),
        _gauge("active_workers", "workers", per_worker=False),
        _counter("requests_started", "requests"),
        _counter("requests_finished", "requests"),
        _counter("prompt_tokens", "tokens"),
        _counter("generated_tokens", "tokens"),
        _counter("preemptions", "preemptions"),
        _counter("prefix_hits", "tokens"),
        _counter("prefix_queries", "tokens"),
        _counter("busy_s", "seconds in a pass"),
        _counter("in_flight_s", "request-seconds"),
        _counter("router_queue_s", "request-seconds", per_worker=False),
        Metric("busy", Kind.RATIO, "share", columns=("busy_s",), ceiling=1.0),
        Metric(
            "prefix_hit_rate", Kind.RATIO, "share", columns=("prefix_hits", "prefix_queries"), ceiling=1.0
        ),
        _histogram("ttft"),
        _histogram("itl"),
        _histogram("tpot"),
        _histogram("e2e"),
        _histogram("queue_time"),
    )
}
"""All metrics by name. ``busy`` is the share of the window spent in passes."""

WORKER_GAUGES = tuple(m.name for m in METRICS.values() if m.kind is Kind.GAUGE and m.per_worker)
"""What a worker is sampled for: values that go up and down."""

WORKER_COUNTERS = tuple(m.name for m in METRICS.values() if m.kind is Kind.COUNTER and m.per_worker)
"""What a worker is sampled for: values that only grow, from 0 at its start."""

FLEET_GAUGES = tuple(m.name for m in METRICS.values() if m.kind is Kind.GAUGE and not m.per_worker)
"""What the front door is sampled for: values that go up and down."""

FLEET_COUNTERS = tuple(m.name for m in METRICS.values() if m.kind is Kind.COUNTER and not m.per_worker)
"""What the front door is sampled for: values that only grow."""

HISTOGRAMS = tuple(m.name for m in METRICS.values() if m.kind is Kind.HISTOGRAM)
"""Metrics of which every observation counts, not a value at a time."""
